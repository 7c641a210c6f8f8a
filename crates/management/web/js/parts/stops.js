// What goes with a node of a cluster when it stops: in sentences, as a table of all nodes, and on the page of one.

import { get, path } from "../api.js";
import { Card, State } from "../components.js";
import { count, noun, number } from "../format.js";
import { html, useEffect, useMemo, useState } from "../html.js";
import { usePolled } from "../poll.js";
import { href } from "../router.js";
import { ListTable } from "../table.js";
import { hasMajority, lossOf, named, quorumsOf, runningOf } from "./majority.js";

/** Of more queues than this, those that go with a node are not counted. */
const QUEUES_MAX = 20_000;

const Names = ({ of: vhosts }) => html`<span class="name">${named(vhosts)}</span>`;

/** Clients that are connected to a node, or in vhosts that it leads, as far as the node tells. */
const clientsOf = ({ sockets_used: led, relayed_connections: relayed = 0 }) => (led === undefined ? undefined : led + relayed);

/** Queues that are gone when these vhosts get another leader than `node`: exclusive and transient ones. Null if there are too many to look at. */
export async function transientQueuesOf(node) {
  const { total_count: total } = await get(path("queues"), { page: 1, page_size: 1, columns: "name", disable_stats: true });
  if (total > QUEUES_MAX) return null;
  const all = await get(path("queues"), { columns: "node,durable,exclusive", disable_stats: true });
  return all.filter((queue) => queue.node === node && (queue.exclusive || !queue.durable)).length;
}

/** The quorums of all vhosts, asked for once. */
export async function loadQuorums() {
  const [nodes, vhosts, replicas] = await Promise.all([
    get(path("nodes"), { disable_stats: true }), get(path("vhosts"), { columns: "name,leader,members", disable_stats: true }),
    get(path("replicas")),
  ]);
  return quorumsOf(vhosts, replicas, runningOf(nodes));
}

/** Sentences, in red, about vhosts that cannot be used without a node; `when` begins them. */
export const lossLines = ({ only, lost }, when) => [
  only.length > 0 && html`<span data-test="only-copy"><span class="loss">${when} the only copy of ${count(only.length, "virtual host")} goes</span>: <${Names} of=${only} /></span>`,
  lost.length > 0 && html`<span data-test="majority-lost"><span class="loss">${when} ${count(lost.length, "virtual host")} ${noun(lost.length, "has", "have")} no majority</span>: <${Names} of=${lost} /></span>`,
];

/** What a stop of each running node would take with it, in sentences. */
function Sentences({ quorums, nodes }) {
  const without = quorums.filter((quorum) => !hasMajority(quorum));
  const stops = nodes.filter(({ running }) => running).map(({ name }) => [name, lossOf(name, quorums)]);
  const dangerous = stops.filter(([, { only, lost }]) => only.length + lost.length > 0);
  return html`
    ${without.length > 0 && html`<p data-test="without-majority"><${State} kind="danger">${count(without.length, "virtual host")} ${noun(without.length, "has", "have")} no majority now<//>: <${Names} of=${without} />. Nothing is confirmed there.</p>`}
    ${dangerous.map(([node, { only, lost }]) => html`<p key=${node} data-test="stop"><${State} kind=${only.length > 0 ? "danger" : "warning"}>If ${node} stopped<//>,${" "}
      ${only.length > 0 && html`the only copy of ${count(only.length, "virtual host")} would be away: <${Names} of=${only} />${lost.length > 0 ? "; " : "."}`}
      ${lost.length > 0 && html`${count(lost.length, "virtual host")} would have no majority: <${Names} of=${lost} />.`}</p>`)}
    ${without.length === 0 && dangerous.length === 0 && html`<p data-test="no-stop"><${State} kind="good">Every virtual host keeps a majority if any one node stops<//>.</p>`}`;
}

const some = (vhosts, kind) => (vhosts.length === 0 ? html`<span class="zero">0</span>`
  : html`<span title=${named(vhosts)}>${kind ? html`<${State} kind=${kind}>${number(vhosts.length)}<//>` : number(vhosts.length)}</span>`);

const COLUMNS = [
  { key: "name", title: "Node", sort: "name", render: ({ name }) => html`<a href=${href("nodes", name)}>${name}</a>` },
  { key: "only", title: "Only copy", width: "5rem", align: "right", hint: "Virtual hosts of which no other node has a copy that can be used", render: ({ loss }) => some(loss.only, "danger") },
  { key: "lost", title: "No majority", width: "5.5rem", align: "right", hint: "Other virtual hosts that would have no majority", render: ({ loss }) => some(loss.lost, "danger") },
  { key: "moved", title: "New leader", width: "5.5rem", align: "right", hint: "Virtual hosts that another node would lead: their clients are closed, on all nodes", render: ({ loss }) => some(loss.moved) },
  { key: "clients", title: "Clients", width: "4.5rem", align: "right", hint: "Clients that are connected to the node, or in virtual hosts that it leads", render: (node) => number(clientsOf(node)) },
];

/** What a stop of each node would take with it. `nodes` are the rows of `useClusterNodes`. */
export function Stops({ quorums, nodes }) {
  const rows = nodes.filter(({ running }) => running).map((node) => ({ ...node, loss: lossOf(node.name, quorums) }));
  return html`<${Card} title="If a node stops" test="stops"><${Sentences} quorums=${quorums} nodes=${nodes} />
    <${ListTable} id="stops-of-nodes" rows=${rows} columns=${COLUMNS} rowKey=${({ name }) => name} noun="node" /><//>`;
}

/** The number of queues that are gone with a node, once it is counted. */
function useTransientQueues(node) {
  const [known, setKnown] = useState(null);
  useEffect(() => {
    let isGone = false;
    // Who must not see queues sees no number.
    transientQueuesOf(node).then((queues) => !isGone && setKnown(queues), () => {});
    return () => {
      isGone = true;
    };
  }, [node]);
  return known;
}

/** The quorums of the vhosts, kept up to date; nothing without a cluster, and until they are known. */
export function useQuorums(nodes, vhosts) {
  const { data: replicas } = usePolled(nodes?.length > 1 ? path("replicas") : null);
  return useMemo(() => nodes && vhosts && replicas && quorumsOf(vhosts, replicas, runningOf(nodes)), [nodes, vhosts, replicas]);
}

/** The card of a node that runs: what goes with it. */
export function IfItStops({ node, quorums }) {
  const queues = useTransientQueues(node.name);
  const loss = lossOf(node.name, quorums);
  const clients = clientsOf(node);
  const lines = [
    ...lossLines(loss, "If it stops,"),
    loss.moved.length > 0 && html`<span data-test="moved">${count(loss.moved.length, "virtual host")} ${noun(loss.moved.length, "gets", "get")} another leader: <${Names} of=${loss.moved} /></span>`,
    clients > 0 && `${count(clients, "client")} ${noun(clients, "is", "are")} closed, and can connect again to another node`,
    queues > 0 && `${count(queues, "exclusive or transient queue")} ${noun(queues, "is", "are")} gone`,
  ].filter(Boolean);
  return html`<${Card} title="If this node stops" test="if-it-stops">${lines.length === 0
    ? html`<p><${State} kind="good">Nothing goes with it<//>: every virtual host has a majority and a leader without it.</p>`
    : html`<ul class="consequences">${lines.map((line, index) => html`<li key=${index}>${line}</li>`)}</ul>`}<//>`;
}
