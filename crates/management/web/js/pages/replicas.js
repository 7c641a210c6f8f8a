// The replicas of the vhosts on the nodes of a cluster: who leads, who is behind, what depends on a node.

import { path } from "../api.js";
import { Card, Loaded, Page, State } from "../components.js";
import { bytes, count, number, visible } from "../format.js";
import { html, useMemo } from "../html.js";
import { rebalance, transfer } from "../parts/leads.js";
import { Stops, majorityState } from "../parts/majority.js";
import { usePlacements } from "../parts/nodes-table.js";
import { usePolled } from "../poll.js";
import { href } from "../router.js";
import { isAdministrator } from "../session.js";
import { ListTable } from "../table.js";

/** The name of the group of users, vhosts and parameters among the replicas. */
const METADATA = "metadata";
const METADATA_TITLE = "Users, virtual hosts and parameters";

const KINDS = { leader: "good", follower: "good", promoting: "warning", candidate: "warning", deposed: "danger", quarantined: "danger" };

/** A member of a vhost: its state, and how far it is behind the leader. */
function memberOf(node, replica, leader, isRunning) {
  if (!isRunning) return { node, kind: "danger", state: "unreachable" };
  if (!replica) return { node, kind: "", state: "does not tell" };
  const behind = leader?.lags[node] ?? Math.max(0, (leader?.committed_index ?? 0) - replica.written_index);
  return { node, kind: KINDS[replica.state] ?? "", state: replica.state, behind, unapplied: replica.unapplied_bytes, replica };
}

/** A row for each vhost, with what each of its members tells. */
export function rowsOf(vhosts, replicas, nodes) {
  const running = new Set(nodes.filter((node) => node.running).map(({ name }) => name));
  const byVhost = Map.groupBy(replicas, ({ vhost }) => vhost);
  const row = ({ name, leader, members }, more) => {
    const own = new Map((byVhost.get(name) ?? []).map((replica) => [replica.node, replica]));
    const leading = own.get(leader);
    const terms = [...own.values()].map(({ term }) => term);
    return {
      name, leader, ...more, nodes: members, running,
      term: leading?.term ?? (terms.length > 0 ? Math.max(...terms) : undefined),
      committed: leading?.committed_index,
      members: members.map((node) => memberOf(node, own.get(node), leading, running.has(node))),
    };
  };
  const rows = vhosts.map((vhost) => row(vhost, {}));
  const metadata = vhosts.some(({ name }) => name === METADATA) ? [] : byVhost.get(METADATA) ?? [];
  if (metadata.length === 0) return rows;
  const leader = metadata.find(({ state }) => state === "leader")?.node;
  return [row({ name: METADATA, leader, members: nodes.map(({ name }) => name) }, { isMetadata: true }), ...rows];
}

const Name = ({ row }) => {
  if (row.isMetadata) return html`<i>${METADATA_TITLE}</i>`;
  return isAdministrator() ? html`<a href=${href("admin", "vhosts", row.name)} title=${row.name}>${visible(row.name)}</a>` : html`<span class="name">${visible(row.name)}</span>`;
};

const Members = ({ members }) => html`<ul class="members">${members.map(({ node, kind, state, behind, unapplied }) => html`<li key=${node} data-test="member">
  <${State} kind=${kind}>${node} ${state}<//>${behind > 0 && html` <span class="muted">${count(behind, "entry", "entries")} behind</span>`}
  ${unapplied > 0 && html` <span class="muted">${bytes(unapplied)} not applied</span>`}</li>`)}</ul>`;

function Majority({ row }) {
  const [kind, words] = majorityState({ members: row.nodes }, row.running);
  return html`<${State} kind=${kind}>${words}<//>`;
}

const COLUMNS = [
  { key: "name", title: "Virtual host", sort: "name", render: (row) => html`<${Name} row=${row} />` },
  { key: "leader", title: "Leader", sort: "leader", width: "8rem", phone: 1, render: (row) => (row.leader ? html`<a href=${href("nodes", row.leader)} data-test="leader">${row.leader}</a>` : html`<${State} kind="danger">none<//>`) },
  { key: "majority", title: "Members", width: "8rem", phone: 2, render: (row) => html`<${Majority} row=${row} />` },
  { key: "states", title: "Replicas", width: "14rem", phone: 3, hint: "Entries of the log that the leader has and a member is not known to have", render: (row) => html`<${Members} members=${row.members} />` },
  { key: "term", title: "Term", sort: "term", width: "4rem", align: "right", hint: "Counts the elections", render: (row) => number(row.term) },
  { key: "committed", title: "Entries", sort: "committed", width: "5rem", align: "right", hint: "Entries that a majority has", render: (row) => number(row.committed) },
];

/** The members that can take the lead of a row. */
const others = (row) => row.nodes.filter((node) => node !== row.leader && row.running.has(node));

function Replicas({ vhosts, replicas, nodes, refresh }) {
  const rows = useMemo(() => vhosts.data && replicas.data && rowsOf(vhosts.data, replicas.data, nodes), [vhosts.data, replicas.data, nodes]);
  const isOffered = isAdministrator();
  const columns = useMemo(() => (isOffered ? [...COLUMNS, {
    key: "actions", title: "", width: "6rem", align: "right",
    render: (row) => !row.isMetadata && row.leader && others(row).length > 0
      && html`<button type="button" class="quiet" onClick=${() => transfer(row.name, others(row), refresh)} data-test="transfer">Transfer\u2026</button>`,
  }] : COLUMNS), [isOffered]);
  const running = new Set(nodes.filter((node) => node.running).map(({ name }) => name));
  return html`
    ${vhosts.data && html`<${Card} title="If a node stops" test="stops"><${Stops} vhosts=${vhosts.data} running=${running} /><//>`}
    <${ListTable} id="replicas" polled=${{ ...vhosts, data: rows }} columns=${columns} rowKey=${(row) => `${row.isMetadata ? 1 : 0}${row.name}`} noun="virtual host" hasFilter="many" />`;
}

export default function ReplicasPage() {
  const nodes = usePolled(path("nodes"));
  const isClustered = nodes.data?.length > 1;
  const vhosts = usePlacements(isClustered);
  const replicas = usePolled(isClustered ? path("replicas") : null);
  const refresh = () => [nodes, vhosts, replicas].forEach((polled) => polled.refresh());
  const isOffered = isClustered && vhosts.data && isAdministrator();
  return html`<${Page} title="Replicas" test="replicas"
      actions=${isOffered && html`<button type="button" onClick=${() => rebalance(nodes.data, vhosts.data, refresh)} data-test="rebalance">Rebalance\u2026</button>`}>
    <${Loaded} polled=${nodes}>${(data) => (data.length > 1
      ? html`<${Replicas} vhosts=${vhosts} replicas=${replicas} nodes=${data} refresh=${refresh} />`
      : html`<p class="empty" data-test="no-cluster">This node is in no cluster: virtual hosts have no replicas.</p>`)}<//>
  <//>`;
}
