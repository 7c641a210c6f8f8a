// What becomes of the messages of a queue, in sentences: from what is in force for it, and why.

import { bytes, count, duration, number } from "../format.js";
import { sourceWords } from "./source.js";
import { listed, policy, queue, toExchange, withKeys } from "./words.js";

const REFUSED = {
  "reject-publish": "beyond that, new ones are refused",
  "reject-publish-dlx": "beyond that, new ones are refused and dead-lettered",
};

/** The keys that are in force, by name: `{ value, source, source_name }`. */
export const inForce = (explanation) =>
  Object.fromEntries((explanation?.keys ?? []).filter(({ value }) => value !== null).map((one) => [one.key, one]));

/** Who gave a value: " (policy TTL)", as a part of a sentence; nothing for defaults. */
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
  if (!ttl) return ["Messages wait here until a consumer takes them, unless they have an expiration of their own."];
  if (ttl.value === 0) return ["What no consumer takes at once expires", ...because(ttl), "."];
  return [`Messages wait here at most ${duration(ttl.value)}`, ...because(ttl), ", then they expire."];
}

function fitting({ "max-length": messages, "max-length-bytes": size, overflow }) {
  const limits = [
    messages && [count(messages.value, "message"), ...because(messages)],
    size && [bytes(size.value), ...because(size)],
  ].filter(Boolean);
  if (limits.length === 0) return null;
  const beyond = REFUSED[overflow?.value] ?? "beyond that, the oldest make room";
  return ["There is room for ", ...limits.flatMap((limit, index) => (index > 0 ? [" and ", ...limit] : limit)), `; ${beyond}.`];
}

function returned({ "delivery-limit": limit }) {
  if (!limit || typeof limit.value !== "number" || limit.value < 0) return null;
  return [`What comes back more than ${count(limit.value, "time")}`, ...because(limit), " dies, too."];
}

function dying({ "dead-letter-exchange": dlx, "dead-letter-routing-key": key }, edges) {
  if (!dlx) return ["What dies here is gone: there is no dead-letter exchange."];
  const own = key ? [...withKeys([key.value]), ...because(key)] : [" with the keys it has"];
  return ["What dies goes to ", ...toExchange(dlx.value, []), ...because(dlx), ...own, ...leading(edges), "."];
}

function leading(edges) {
  if (edges.length === 0) return [];
  const targets = [...new Set(edges.flatMap((edge) => edge.to_queues ?? []))];
  if (edges.some((edge) => edge.anywhere)) return [", which leads to the queue that a key names"];
  if (targets.length === 0) return [", which leads to no queue"];
  const names = targets.slice(0, 4).map(queue);
  const more = targets.length > 4 ? [`${number(targets.length - 4)} more`] : [];
  const isCertain = edges.every((edge) => edge.certain);
  const noun = targets.length === 1 ? "queue " : "queues ";
  return [isCertain ? `, which leads to ${noun}` : `, which can lead to ${noun}`, ...listed([...names, ...more]), ...(isCertain ? [] : [", as its keys say"])];
}

function leaving({ expires }) {
  return expires ? [`The queue itself is deleted when nobody has used it for ${duration(expires.value)}`, ...because(expires), "."] : null;
}
