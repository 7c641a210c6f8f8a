// What happens to the messages of a queue, in sentences: from its effective settings and their sources.

import { bytes, count, duration, number } from "../format.js";
import { sourceWords } from "./source.js";
import { listed, policy, queue, toExchange, withKeys } from "./words.js";

const REFUSED = {
  "reject-publish": "beyond that, new messages are refused",
  "reject-publish-dlx": "beyond that, new messages are refused and dead-lettered",
};

/** The keys that are in force, by name: `{ value, source, source_name }`. */
export const inForce = (explanation) =>
  Object.fromEntries((explanation?.keys ?? []).filter(({ value }) => value !== null).map((one) => [one.key, one]));

/** The source of a value: " (policy TTL)", as a part of a sentence; nothing for defaults. */
export function because({ source, source_name: name }) {
  if (source === "default") return [];
  const words = sourceWords(source);
  return name ? [` (${words} `, policy(name, source), ")"] : [` (${words})`];
}

/**
 * Sentences about what happens to a message here, each a list of parts. `edges` are those of the dead-letter
 * map that begin in the queue.
 */
export function fate(explanation, edges = []) {
  const keys = inForce(explanation);
  return [waiting(keys), fitting(keys), returned(keys), dying(keys, edges), leaving(keys)].filter(Boolean);
}

function waiting({ "message-ttl": ttl }) {
  if (!ttl) return ["Messages wait until a consumer takes them, unless they have an expiration of their own."];
  if (ttl.value === 0) return ["A message that no consumer takes at once expires", ...because(ttl), "."];
  return [`Messages wait at most ${duration(ttl.value)}`, ...because(ttl), ", then they expire."];
}

function fitting({ "max-length": messages, "max-length-bytes": size, overflow }) {
  const limits = [
    messages && [count(messages.value, "message"), ...because(messages)],
    size && [bytes(size.value), ...because(size)],
  ].filter(Boolean);
  if (limits.length === 0) return null;
  const beyond = REFUSED[overflow?.value] ?? "beyond that, the oldest messages are removed";
  return ["The queue holds at most ", ...limits.flatMap((limit, index) => (index > 0 ? [" and ", ...limit] : limit)), `; ${beyond}.`];
}

function returned({ "delivery-limit": limit, "delivery-limit-action": action }) {
  if (!limit || typeof limit.value !== "number" || limit.value < 0) return null;
  const kept = action?.value === "keep" ? [" and is kept here, unless a dead-letter exchange takes it", ...because(action)] : [];
  return [`A message that is returned more than ${count(limit.value, "time")}`, ...because(limit), " dies", ...kept, "."];
}

function dying({ "dead-letter-exchange": dlx, "dead-letter-routing-key": key, "delivery-limit-action": action }, edges) {
  const who = action?.value === "keep" ? "Messages that die in another way" : "Messages that die";
  if (!dlx) return [`${who} are dropped: the queue has no dead-letter exchange.`];
  const own = key ? [...withKeys([key.value]), ...because(key)] : [" with unchanged routing keys"];
  return ["Dead letters go to ", ...toExchange(dlx.value, []), ...because(dlx), ...own, ...leading(edges), "."];
}

function leading(edges) {
  if (edges.length === 0) return [];
  const targets = [...new Set(edges.flatMap((edge) => edge.to_queues ?? []))];
  if (edges.some((edge) => edge.anywhere)) return [", which routes to the queue named by the routing key"];
  if (targets.length === 0) return [", which routes to no queue"];
  const names = targets.slice(0, 4).map(queue);
  const more = targets.length > 4 ? [`${number(targets.length - 4)} more`] : [];
  const isCertain = edges.every((edge) => edge.certain);
  const noun = targets.length === 1 ? "queue " : "queues ";
  return [isCertain ? `, which routes to ${noun}` : `, which can route to ${noun}`, ...listed([...names, ...more]), ...(isCertain ? [] : [", depending on the routing key"])];
}

function leaving({ expires }) {
  return expires ? [`The queue itself is deleted when unused for ${duration(expires.value)}`, ...because(expires), "."] : null;
}
