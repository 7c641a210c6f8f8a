// The dead-letter map as a graph: pure functions without pixels.

import { count, rate, number } from "../../format.js";
import { REASONS } from "../../parts/deaths.js";
import { about } from "../../parts/warnings.js";
import { addDelays, expiryOf, labelOfLines } from "./delays.js";

/** Kinds of warnings that are about an exchange as well as about the queue. */
const DEAD_ENDS = ["exchange_missing", "unroutable"];

/** The name of a node. */
export const nodeId = (kind, vhost, name, way = null) => JSON.stringify([kind, vhost, name, way]);

/**
 * Nodes and links of a map. An exchange has a node for each way through it, by key and targets: else nobody
 * could tell which of its sources leads to which of its targets. Through the default exchange a link leads
 * straight to the queue its key names; what has none to go to there ends at a node of the kind "nowhere", or
 * "anywhere" if that depends on each message. A delay in a queue is a link from the queue to itself.
 */
export function graphOf(map) {
  const nodes = new Map();
  const node = (kind, vhost, name, more = {}) => {
    const id = nodeId(kind, vhost, name, more.way);
    if (!nodes.has(id)) nodes.set(id, { id, kind, vhost, name, warnings: [], facts: null, ...more });
    return nodes.get(id);
  };
  const links = new Map();
  const link = (from, to, { isCertain = true, label = null } = {}) => {
    const id = JSON.stringify([from.id, to.id]);
    const old = links.get(id);
    links.set(id, { id, from: from.id, to: to.id, label: label ?? old?.label ?? null, isCertain: isCertain && (old?.isCertain ?? true) });
  };
  for (const edge of map.edges) {
    const { vhost, exchange, routing_key: key, certain: isCertain } = edge;
    const from = edge.from_queues_total > 1 ? node("group", vhost, edge.from_queue, groupOf(edge)) : node("queue", vhost, edge.from_queue);
    const targets = edge.to_queues.map((name) => node("queue", vhost, name));
    const left = (edge.to_queues_total ?? 0) - edge.to_queues.length;
    if (left > 0) targets.push(node("more", vhost, `and ${count(left, "more queue")}`, { way: [exchange, key] }));
    const label = labelOf(edge);
    if (exchange === "") {
      const end = edge.anywhere ? "anywhere" : "nowhere";
      const ends = targets.length > 0 ? targets : [node(end, vhost, edge.from_queue)];
      ends.forEach((to, index) => link(from, to, { isCertain, label: index === 0 ? label : null }));
    } else {
      const middle = node("exchange", vhost, exchange, { key, way: [key, ...edge.to_queues] });
      // What a queue sends there is certain; where it goes then may not be.
      link(from, middle, { label });
      for (const to of targets) link(middle, to, { isCertain });
    }
  }
  addDelays(map.delays ?? [], { node, link });
  addFacts(nodes, map);
  return { nodes: [...nodes.values()], links: [...links.values()] };
}

/** What a node has that stands for several queues with the same route. */
const groupOf = ({ exchange, routing_key: key, from_queues: names, from_queues_total: total, from_messages: messages, from_consumers: consumers, severity, strategy }) => ({
  way: [exchange, key, severity, strategy], names, total, severity, own: { messages, consumers }, title: count(total, "queue"),
});

/** The node that a queue is drawn as: its own, or that of its group. */
function queueNodes(nodes) {
  const groups = new Map();
  for (const node of nodes.values()) {
    for (const name of node.names ?? []) groups.set(nodeId("queue", node.vhost, name), node);
  }
  return (vhost, name) => nodes.get(nodeId("queue", vhost, name)) ?? groups.get(nodeId("queue", vhost, name));
}

/** The warnings of a group about queues that are not named here: those of its exchange, or a word that there are some. */
function addOthers(nodes) {
  const others = { kind: "warnings", text: "The table lists these queues with their warnings" };
  for (const { kind, vhost, way, severity, warnings } of nodes.values()) {
    if (kind !== "group" || !severity || warnings.length > 0) continue;
    const of = [...nodes.values()].find((one) => one.kind === "exchange" && one.vhost === vhost && one.name === way[0] && one.key === way[1]);
    warnings.push(...(of?.warnings.length > 0 ? of.warnings.slice(0, 1) : [{ severity, ...others }]));
  }
}

function addFacts(nodes, map) {
  const queues = new Map((map.queues ?? []).map((queue) => [nodeId("queue", queue.vhost, queue.name), queue]));
  const exchanges = new Map((map.exchanges ?? []).map((exchange) => [nodeId("exchange", exchange.vhost, exchange.name), exchange]));
  for (const node of nodes.values()) {
    const facts = node.kind === "queue" ? queues : exchanges;
    node.facts = node.own ?? facts.get(nodeId(node.kind, node.vhost, node.name)) ?? null;
  }
  const ways = Map.groupBy([...nodes.values()].filter((node) => node.kind === "exchange"), (node) => nodeId("exchange", node.vhost, node.name));
  const nodeOf = queueNodes(nodes);
  for (const warning of map.warnings ?? []) {
    const concerned = new Set([about(warning), ...(warning.queues ?? [])].map((name) => nodeOf(warning.vhost, name)));
    for (const node of concerned) node?.warnings.push(warning);
    if (!DEAD_ENDS.includes(warning.kind)) continue;
    for (const node of ways.get(nodeId("exchange", warning.vhost, warning.exchange)) ?? []) {
      if (node.way.length === 1) node.warnings.push(warning);
    }
  }
  addOthers(nodes);
}

/** Deaths of an edge, those that go on first: "0.2/s expired", or "12 expired" of what was. */
export function deathsOf({ rate_by_reason: rates = {}, count_by_reason: counts = {} }) {
  return Object.keys(REASONS)
    .map((reason) => ({ reason, rate: rates[reason] ?? 0, count: counts[reason] ?? 0 }))
    .filter((one) => one.rate > 0 || one.count > 0)
    .sort((a, b) => b.rate - a.rate || b.count - a.count)
    .map((one) => ({ ...one, text: `${one.rate > 0 ? rate(one.rate) : number(one.count)} ${REASONS[one.reason]}` }));
}

function labelOf(edge) {
  const deaths = deathsOf(edge);
  const after = [expiryOf(edge)].filter(Boolean);
  const lines = [...after, ...deaths.slice(0, 2).map((one) => one.text)];
  return labelOfLines(lines, { fixed: after.length, height: 2 + after.length, isMoving: deaths.some((one) => one.rate > 0) });
}

/** Nodes that hang together, in groups: those with faults first, then the largest. */
export function groups({ nodes, links }) {
  const leader = new Map(nodes.map(({ id }) => [id, id]));
  const find = (id) => {
    let at = id;
    while (leader.get(at) !== at) at = leader.get(at);
    leader.set(id, at);
    return at;
  };
  for (const { from, to } of links) leader.set(find(from), find(to));
  const all = new Map();
  for (const node of nodes) {
    const key = find(node.id);
    const group = all.get(key) ?? { nodes: [], links: [], faults: 0 };
    group.nodes.push(node);
    group.faults += node.warnings.filter((warning) => warning.severity === "error").length;
    all.set(key, group);
  }
  for (const link of links) all.get(find(link.from)).links.push(link);
  return [...all.values()].sort((a, b) => Math.sign(b.faults) - Math.sign(a.faults) || b.nodes.length - a.nodes.length);
}

/** Everything that a message of a node can come to, and where it can be from: ids of nodes and links. */
export function reach({ links }, id) {
  const found = { nodes: new Set([id]), links: new Set() };
  const walk = (here, there) => {
    const by = Map.groupBy(links, (link) => link[here]);
    const seen = new Set([id]);
    const open = [id];
    while (open.length > 0) {
      for (const link of by.get(open.pop()) ?? []) {
        found.links.add(link.id);
        found.nodes.add(link[there]);
        if (!seen.has(link[there])) open.push(link[there]);
        seen.add(link[there]);
      }
    }
  };
  walk("from", "to");
  walk("to", "from");
  return found;
}
