// The replicas of the vhosts on the nodes of a cluster: who leads, who is behind, what depends on a node.

import { path } from "../api.js";
import { Loaded, Page, State } from "../components.js";
import { number, visible } from "../format.js";
import { html, useMemo } from "../html.js";
import { actionsColumn } from "../parts/columns.js";
import { rebalance, transfer } from "../parts/leads.js";
import { METADATA, isOfMetadata, majorityState, quorumOf, quorumsOf, runningOf } from "../parts/majority.js";
import { Leader, Members, memberOf } from "../parts/members.js";
import { useClusterNodes } from "../parts/nodes-table.js";
import { Stops } from "../parts/stops.js";
import { usePolled } from "../poll.js";
import { href } from "../router.js";
import { isAdministrator } from "../session.js";
import { ListTable } from "../table.js";

const METADATA_TITLE = "Users, virtual hosts and parameters";

/** A row for each vhost, with what each of its members tells. */
export function rowsOf(vhosts, replicas, nodes) {
  const running = runningOf(nodes);
  const byVhost = Map.groupBy(replicas.filter((replica) => !isOfMetadata(replica)), ({ vhost }) => vhost);
  const row = ({ name, leader, members }, told, more) => {
    const own = new Map(told.map((replica) => [replica.node, replica]));
    const quorum = quorumOf({ name, leader, members }, told, running);
    const leading = own.get(leader);
    const terms = [...own.values()].map(({ term }) => term);
    return {
      ...quorum, ...more, nodes: members, running,
      term: leading?.term ?? (terms.length > 0 ? Math.max(...terms) : undefined),
      committed: leading?.committed_index,
      states: members.map((node) => memberOf(node, own.get(node), leading, running.has(node), quorum.voters.includes(node))),
    };
  };
  const rows = vhosts.map((vhost) => row(vhost, byVhost.get(vhost.name) ?? [], {}));
  const metadata = replicas.filter(isOfMetadata);
  if (metadata.length === 0) return rows;
  const leader = metadata.find(({ state }) => state === "leader")?.node;
  return [row({ name: METADATA, leader, members: nodes.map(({ name }) => name) }, metadata, { isMetadata: true }), ...rows];
}

const Name = ({ row }) => {
  if (row.isMetadata) return html`<i>${METADATA_TITLE}</i>`;
  return isAdministrator() ? html`<a href=${href("admin", "vhosts", row.name)} title=${row.name}>${visible(row.name)}</a>` : html`<span class="name">${visible(row.name)}</span>`;
};

function Majority({ row }) {
  const [kind, words] = majorityState(row);
  return html`<${State} kind=${kind}>${words}<//>`;
}

const COLUMNS = [
  { key: "name", title: "Virtual host", sort: "name", render: (row) => html`<${Name} row=${row} />` },
  { key: "leader", title: "Leader", sort: "leader", width: "8rem", phone: 1, render: (row) => html`<${Leader} leader=${row.leader} />` },
  { key: "majority", title: "Members", width: "8rem", phone: 2, render: (row) => html`<${Majority} row=${row} />` },
  { key: "states", title: "Replicas", width: "17rem", phone: 3, hint: "Entries of the log that the leader has and a member is not known to have", render: (row) => html`<${Members} states=${row.states} />` },
  { key: "term", title: "Term", sort: "term", width: "4rem", align: "right", hint: "Counts the elections", render: (row) => number(row.term) },
  { key: "committed", title: "Entries", sort: "committed", width: "5rem", align: "right", hint: "Entries that a majority has", render: (row) => number(row.committed) },
];

/** The members that can take the lead of a row. */
const others = (row) => row.nodes.filter((node) => node !== row.leader && row.running.has(node));

function Replicas({ vhosts, replicas, nodes, refresh }) {
  const quorums = useMemo(() => vhosts.data && quorumsOf(vhosts.data, replicas.data, runningOf(nodes)), [vhosts.data, replicas.data, nodes]);
  const rows = useMemo(() => vhosts.data && replicas.data && rowsOf(vhosts.data, replicas.data, nodes), [vhosts.data, replicas.data, nodes]);
  const isOffered = isAdministrator();
  const columns = useMemo(() => (isOffered ? [...COLUMNS, actionsColumn((row) => !row.isMetadata && row.leader && others(row).length > 0
    && html`<button type="button" class="quiet" onClick=${() => transfer(row.name, others(row), refresh)} data-test="transfer">Transfer\u2026</button>`)] : COLUMNS), [isOffered]);
  return html`
    ${quorums && replicas.data && html`<${Stops} quorums=${quorums} nodes=${nodes} />`}
    <${ListTable} id="replicas" polled=${{ ...vhosts, data: rows }} columns=${columns} rowKey=${(row) => `${row.isMetadata ? 1 : 0}${row.name}`} noun="virtual host" hasFilter="many" />`;
}

export default function ReplicasPage() {
  const nodes = usePolled(path("nodes"));
  const isClustered = nodes.data?.length > 1;
  const clusterNodes = useClusterNodes(nodes);
  const vhosts = clusterNodes.placements;
  const replicas = usePolled(isClustered ? path("replicas") : null);
  const refresh = () => [nodes, vhosts, replicas].forEach((polled) => polled.refresh());
  const isOffered = isClustered && vhosts.data && isAdministrator();
  return html`<${Page} title="Replicas" test="replicas"
      actions=${isOffered && html`<button type="button" onClick=${() => rebalance(nodes.data, vhosts.data, refresh)} data-test="rebalance">Rebalance\u2026</button>`}>
    <${Loaded} polled=${nodes}>${(data) => (data.length > 1
      ? html`<${Replicas} vhosts=${vhosts} replicas=${replicas} nodes=${clusterNodes.rows ?? data} refresh=${refresh} />`
      : html`<p class="empty" data-test="no-cluster">This node is in no cluster: virtual hosts have no replicas.</p>`)}<//>
  <//>`;
}
