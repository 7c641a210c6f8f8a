// Where the nodes of the dead-letter map stand: in layers, group below group.

import dagre from "../../../vendor/dagre.js";
import { groups } from "./graph.js";

const LETTER = 7.1;
const SMALL_LETTER = 6.1;
const NODE_MIN = 148;
const WAY_MIN = 96;
const NODE_MAX = 230;
const MARGIN = 12;
const GAP = 26;

/** How large a node is: it must not change with figures, or everything would jump. */
export function sizeOf({ kind, name, title = name, key, text, warnings }) {
  if (kind === "more") return { width: 150, height: 28 };
  if (kind === "nowhere" || kind === "anywhere") return { width: 104, height: 28 };
  const isWay = kind === "exchange";
  const letters = Math.max(title.length * LETTER, isWay ? keyOf({ key, text }).length * SMALL_LETTER : 0);
  const width = Math.min(NODE_MAX, Math.max(isWay ? WAY_MIN : NODE_MIN, letters + 30));
  return { width: warnings.length > 0 ? Math.max(width, 150) : width, height: 16 + (warnings.length > 0 ? 3 : 2) * 16 };
}

/** What an exchange's node says about keys, or about its delayed messages. */
export const keyOf = ({ key, text }) => text ?? (key === null ? "key unchanged" : `with key ${key}`);

/** As many letters of a text as have room in a node. */
export function fitting(text, width, isSmall = false) {
  const room = Math.floor((width - 24) / (isSmall ? SMALL_LETTER : LETTER));
  return text.length > room ? `${text.slice(0, Math.max(1, room - 1))}\u2026` : text;
}

/** Half of a loop's width at its queue, and its room between the queue and the label. */
const LOOP = { width: 24, gap: 12 };

/** Where the line from the middle of a box to a point leaves the box. */
function edgeOf({ x, y, width, height }, { x: toX, y: toY }) {
  const [dx, dy] = [toX - x, toY - y];
  if (dx === 0 && dy === 0) return { x, y: y + height / 2 };
  const part = Math.min(width / 2 / Math.abs(dx), height / 2 / Math.abs(dy));
  return { x: x + dx * part, y: y + dy * part };
}

/** A line from a box to itself, below the box. */
function loopOf({ id, label }, { x, y, width, height }) {
  const bottom = y + height / 2;
  const middle = bottom + LOOP.gap + label.height / 2;
  const out = Math.max(LOOP.width, Math.min(width, label.width) / 2);
  const points = [[-LOOP.width, bottom], [-out, middle], [out, middle], [LOOP.width, bottom]];
  return { id, points: points.map(([dx, at]) => ({ x: x + dx, y: at })), x, y: middle };
}

/** One group: its nodes with `x`, `y`, its links with `points`, its size. */
function layGroup({ nodes, links }, direction) {
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: direction, nodesep: 18, ranksep: direction === "LR" ? 30 : 22, edgesep: 12, marginx: MARGIN, marginy: MARGIN, ranker: "tight-tree" });
  const loops = new Map(links.filter(({ from, to }) => from === to).map((link) => [link.from, link]));
  const ways = links.filter(({ from, to }) => from !== to);
  const boxes = new Map(nodes.map((node) => {
    const { width, height } = sizeOf(node);
    const label = loops.get(node.id)?.label;
    return [node.id, { width: Math.max(width, label?.width ?? 0), height, below: label ? LOOP.gap + label.height : 0 }];
  }));
  for (const [id, { width, height, below }] of boxes) graph.setNode(id, { width, height: height + below });
  for (const link of ways) graph.setEdge(link.from, link.to, link.label ? { width: link.label.width, height: link.label.height, labelpos: "c" } : {}, link.id);
  dagre.layout(graph);
  for (const [id, box] of boxes) {
    const { x, y } = graph.node(id);
    Object.assign(box, { x, y: y - box.below / 2 });
  }
  const wayOf = ({ id, from, to }) => {
    const { points, x, y } = graph.edge(from, to, id);
    const inner = points.slice(1, -1);
    return { id, x, y, points: [edgeOf(boxes.get(from), inner[0]), ...inner, edgeOf(boxes.get(to), inner.at(-1))] };
  };
  const { width, height } = graph.graph();
  return {
    width,
    height,
    nodes: nodes.map(({ id }) => ({ id, ...boxes.get(id) })),
    links: [...ways.map(wayOf), ...[...loops].map(([id, link]) => loopOf(link, boxes.get(id)))],
  };
}

/** Everything within a width, if that is possible; from left to right, long ways downwards: `{ width, height, nodes, links }`, the last two by id. */
export function layOut(graph, room) {
  const all = { width: 0, height: 0, nodes: new Map(), links: new Map() };
  let shelf = { x: 0, y: 0, height: 0 };
  const every = groups(graph).map((group) => {
    const wide = layGroup(group, "LR");
    const isLong = wide.width > room && wide.width > 2 * wide.height;
    return isLong ? layGroup(group, "TB") : wide;
  });
  // What is tall comes last, beside each other, so that little stays empty.
  for (const laid of every.sort((a, b) => (a.height > room ? 1 : 0) - (b.height > room ? 1 : 0))) {
    if (shelf.x > 0 && shelf.x + laid.width > room) shelf = { x: 0, y: shelf.y + shelf.height + GAP, height: 0 };
    const { x: dx, y: dy } = shelf;
    for (const node of laid.nodes) all.nodes.set(node.id, { ...node, x: node.x + dx, y: node.y + dy });
    for (const link of laid.links) {
      const moved = link.points.map(({ x, y }) => ({ x: x + dx, y: y + dy }));
      all.links.set(link.id, { points: moved, x: link.x === undefined ? null : link.x + dx, y: link.x === undefined ? null : link.y + dy });
    }
    shelf = { x: dx + laid.width + GAP, y: dy, height: Math.max(shelf.height, laid.height) };
    all.width = Math.max(all.width, dx + laid.width);
    all.height = Math.max(all.height, dy + laid.height);
  }
  return all;
}

/** What decides about the layout, as text: as long as it stays, so does every node. */
export const shapeOf = ({ nodes, links }) =>
  JSON.stringify([nodes.map((node) => [node.id, node.warnings.length > 0]), links.map((link) => [link.id, link.label && [link.label.width, link.label.height]])]);

/** A line through points, rounded. */
export function curve(points) {
  const [first, ...rest] = points;
  if (rest.length < 2) return `M${at(first)}L${rest.map(at).join("L")}`;
  const parts = [`M${at(first)}`];
  for (let index = 0; index < rest.length - 1; index += 1) {
    const [here, next] = [rest[index], rest[index + 1]];
    const isLast = index === rest.length - 2;
    const end = isLast ? next : { x: (here.x + next.x) / 2, y: (here.y + next.y) / 2 };
    parts.push(`Q${at(here)} ${at(end)}`);
  }
  return parts.join("");
}

const at = ({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`;
