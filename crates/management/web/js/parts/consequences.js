// What goes with a thing that is deleted: counted when it is asked about.

import { exchangePath, get, path } from "../api.js";
import { count, noun, number } from "../format.js";
import { html, useEffect, useState } from "../html.js";
import { lossOf, named } from "./majority.js";
import { loadQuorums, lossLines, transientQueuesOf } from "./stops.js";

/** From so many messages on, the name is to be typed before they are removed. */
export const MANY_MESSAGES = 10_000;
const NAMED_MAX = 5;

/** The word to be typed before so many messages go: none if they are few. */
export const typedFor = (name, messages) => (messages >= MANY_MESSAGES ? name : "");

/** What is counted, as a list: `load` gives texts, and false for what there is none of. */
export function Consequences({ load }) {
  const [told, setTold] = useState({ lines: null, error: null });
  useEffect(() => {
    let isGone = false;
    load().then(
      (lines) => !isGone && setTold({ lines: lines.filter(Boolean), error: null }),
      (error) => !isGone && setTold({ lines: null, error }),
    );
    return () => {
      isGone = true;
    };
  }, []);
  if (told.error) return html`<p class="form-error" data-test="consequences">What goes with it cannot be counted: ${told.error.message}</p>`;
  if (!told.lines) return html`<p class="muted" aria-busy="true">Counting\u2026</p>`;
  return html`<ul class="consequences" data-test="consequences">${told.lines.map((line, index) => html`<li key=${index}>${line}</li>`)}</ul>`;
}

const names = (all) => `${all.slice(0, NAMED_MAX).join(", ")}${all.length > NAMED_MAX ? ` and ${number(all.length - NAMED_MAX)} more` : ""}`;

/** A pattern of the broker that matches this name only. */
export const exactly = (name) => `^${name.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&")}$`;

/** "is removed" or "are removed" */
const be = (value) => (value === 1 ? "is" : "are");
const counted = (value, noun, rest) => value > 0 && `${count(value, noun)} ${be(value)} ${rest}`;

/** How many of a list there are, without the list; null if that is not to be known. */
const total = async (url) => {
  const page = await get(url, { page: 1, page_size: 1, columns: "name", disable_stats: true }).catch(() => null);
  return page?.filtered_count ?? page?.total_count ?? (Array.isArray(page) ? page.length : null);
};

/** The edges of the dead-letter map with this name; none for who must not see it. */
const edges = async (vhost, name) =>
  (await get(path("dead-letter-map", vhost), { name: exactly(name), use_regex: true, page_size: 500 }).catch(() => null))?.edges ?? [];

/** Of a queue: what is in it as it is now, and what hangs on it. */
export async function ofQueue(vhost, name) {
  const [queue, bindings, map] = await Promise.all([
    get(path("queues", vhost, name)), get(path("queues", vhost, name, "bindings"), { columns: "source" }), edges(vhost, name),
  ]);
  const senders = new Set(map.filter((edge) => edge.to_queues.includes(name) && edge.from_queue !== name).map((edge) => edge.from_queue));
  return [
    queue.messages > 0 ? html`<b>${count(queue.messages, "message")}</b> ${be(queue.messages)} lost, not dead-lettered` : "It is empty",
    counted(queue.consumers, "consumer", "cancelled"),
    counted(bindings.filter(({ source }) => source !== "").length, "binding", "removed"),
    senders.size > 0 && `${count(senders.size, "queue")} would send dead letters that do not arrive here any more: ${names([...senders])}`,
  ];
}

/** Of an exchange: its bindings, the queues that nothing else leads to, and dead letters that would be lost. */
export async function ofExchange(vhost, name) {
  const [exchange, all, incoming, map] = await Promise.all([
    get(exchangePath(vhost, name), { columns: "messages_delayed" }),
    get(path("bindings", vhost), { columns: "source,destination,destination_type" }),
    get(exchangePath(vhost, name, "bindings", "destination"), { columns: "source" }),
    edges(vhost, name),
  ]);
  const outgoing = all.filter(({ source }) => source === name);
  const others = new Set(all.filter(({ source, destination_type: type }) => type === "queue" && source !== name && source !== "").map(({ destination }) => destination));
  const bound = new Set(outgoing.filter(({ destination_type: type }) => type === "queue").map(({ destination }) => destination));
  const alone = [...bound].filter((queue) => !others.has(queue));
  const senders = new Set(map.filter(({ exchange }) => exchange === name).map((edge) => edge.from_queue));
  return [
    exchange.messages_delayed > 0 && html`<b>${count(exchange.messages_delayed, "delayed message")}</b> ${be(exchange.messages_delayed)} lost`,
    counted(outgoing.length + incoming.length, "binding", "removed") || "Nothing is bound to it",
    alone.length > 0 && `${count(alone.length, "queue")} can be reached through no other exchange then, only by name: ${names(alone)}`,
    senders.size > 0 && html`<b>${count(senders.size, "queue")}</b> would lose dead letters, which go to this exchange: ${names([...senders])}`,
    "Messages that are published to it later are refused",
  ];
}

/** Of a vhost: everything in it. */
export async function ofVhost(name) {
  const [vhost, queues, exchanges, connections, permissions] = await Promise.all([
    get(path("vhosts", name)), total(path("queues", name)), total(path("exchanges", name)),
    total(path("vhosts", name, "connections")), get(path("vhosts", name, "permissions")),
  ]);
  return [
    html`<b>${count(queues ?? 0, "queue")}</b> with <b>${count(vhost.messages ?? 0, "message")}</b>`,
    `${count(exchanges ?? 0, "exchange")}, with all bindings, policies and limits`,
    counted(connections ?? 0, "connection", "closed") || "No connection is open",
    counted(permissions.length, "permission", "removed"),
  ];
}

/** Of a user. */
export async function ofUser(name) {
  const [permissions, topic, connections] = await Promise.all([
    get(path("users", name, "permissions")), get(path("users", name, "topic-permissions")), total(path("connections", "username", name)),
  ]);
  return [
    counted(permissions.length + topic.length, "permission", "removed") || "The user has no permissions",
    counted(connections ?? 0, "connection", "closed") || "No connection of the user is open",
  ];
}

/** Of a connection: what its channels hold. */
export async function ofConnection(name) {
  const channels = await get(path("connections", name, "channels"));
  const sum = (field) => channels.reduce((all, channel) => all + (channel[field] ?? 0), 0);
  const unacked = sum("messages_unacknowledged");
  return [
    counted(channels.length, "channel", "closed") || "It has no channel",
    counted(sum("consumer_count"), "consumer", "cancelled"),
    unacked > 0 && `${count(unacked, "unacknowledged message")} ${unacked === 1 ? "returns to its queue" : "return to their queues"}`,
    "The client may connect again at once",
  ];
}

const CLOSED_320 = "reply code 320. Their clients can connect again at once, to any node";
const AGAIN = "Nothing is lost; messages that were delivered and not acknowledged come again, marked redelivered";

/** Of a transfer of the lead of a vhost. */
export async function ofTransfer(vhost) {
  const connections = await total(path("vhosts", vhost, "connections"));
  return [
    counted(connections ?? 0, "connection", `closed with ${CLOSED_320}`) || "No connection is open in it",
    AGAIN,
    "If the other node does not take the lead within a second, nothing changes and no connection is closed",
  ];
}

/** Of a rebalance: which vhosts get another leader is known only afterwards. */
export async function ofRebalance(nodes, vhosts) {
  const led = nodes.map(({ name }) => `${name} leads ${number(vhosts.filter(({ leader }) => leader === name).length)}`);
  return [
    `Now ${led.join(", ")} of ${count(vhosts.length, "virtual host")}`,
    `Connections of each virtual host that gets another leader are closed with ${CLOSED_320}`,
    AGAIN,
  ];
}

/** The names of the connections that clients have with a node. */
export async function connectionsOf(node) {
  const all = await get(path("connections"), { columns: "name,node", disable_stats: true });
  return all.filter((one) => one.node === node).map(({ name }) => name);
}

/** Of draining a node. */
export async function ofDrain(node, runningOthers) {
  const [connections, quorums, queues] = await Promise.all([connectionsOf(node), loadQuorums(), transientQueuesOf(node)]);
  const led = quorums.filter(({ leader }) => leader === node);
  const kept = led.filter(({ up }) => !up.some((other) => other !== node));
  const moved = led.length - kept.length;
  return [
    counted(connections.length, "connection", "closed. Their clients can connect again to another node") || "No client is connected to it",
    runningOthers > 0
      ? moved > 0 && `Other nodes lead the ${count(moved, "virtual host")} that it leads${kept.length > 0 ? " and they can lead" : ""}; clients of these on other nodes are closed with ${CLOSED_320}`
      : led.length > 0 && html`<b>No other node runs: nobody else can lead the ${count(led.length, "virtual host")} that it leads</b>`,
    kept.length > 0 && html`<span data-test="kept-leads">It goes on leading ${count(kept.length, "virtual host")} that no other node can lead: <span class="name">${named(kept)}</span></span>`,
    queues > 0 && `${count(queues, "exclusive or transient queue")} in virtual hosts that it leads ${noun(queues, "goes", "go")} with the connections and the leads`,
    ...lossLines(lossOf(node, quorums), "When it is stopped,"),
    "It accepts no AMQP client until it is revived; its replicas stay up to date, and its page and API work",
  ];
}

/** Of forgetting a node that is gone; `left` nodes run without it. */
export async function ofForget(node, left) {
  const { only } = lossOf(node, await loadQuorums());
  return [
    ...lossLines({ only, lost: [] }, "For good,"),
    "It counts for no majority any more: its replicas are removed from all virtual hosts",
    "It takes no part should it come back; after a reset it can join again",
    `${count(left, "node")} of the cluster ${left === 1 ? "runs" : "run"} without it`,
  ];
}
