// The settings that policies give, and how their values look.

import { bytes, duration, plain } from "../format.js";
import { html } from "../html.js";

/** What kind of value a key has; `of` tells which names belong into its place. */
const MS = { type: "number", unit: "ms" };
const BYTES = { type: "number", unit: "bytes" };
const COUNT = { type: "number" };
const TEXT = { type: "text" };
const choice = (...choices) => ({ type: "choice", choices });

/**
 * Every key: `on` is what has it, if not every queue; `keepsFrom` is the type of queue that the whole policy passes by
 * for it; `isOperators` says that operator policies may have it.
 * Whether a value is right is for the server to say.
 */
export const GROUPS = [
  ["Expiry", [
    { key: "message-ttl", ...MS, isOperators: true, hint: "A message leaves so long after it came." },
    { key: "expires", ...MS, isOperators: true, hint: "The queue is deleted when nobody has used it for so long." },
    { key: "expiry-order", ...choice("deadline", "head"), isOperators: true,
      hint: "deadline: each message leaves at its own time. head: only at the front of the queue, as in RabbitMQ." },
  ]],
  ["Length", [
    { key: "max-length", ...COUNT, isOperators: true, hint: "So many messages may wait." },
    { key: "max-length-bytes", ...BYTES, isOperators: true, hint: "Bodies of so many bytes may wait." },
    { key: "overflow", ...choice("drop-head", "reject-publish", "reject-publish-dlx"), isOperators: true,
      hint: "What happens beyond the length: the oldest leaves, or the new one is refused." },
  ]],
  ["Dead letters", [
    { key: "dead-letter-exchange", ...TEXT, of: "exchanges",
      hint: "Where messages go that expire, are rejected or are too many. Empty: the default exchange, whose routing key is the name of a queue." },
    { key: "dead-letter-routing-key", ...TEXT, of: "queues", hint: "Their key then; without it they keep their own." },
    { key: "dead-letter-strategy", ...choice("at-most-once", "at-least-once"), on: "quorum", keepsFrom: "classic",
      hint: "at-least-once: a dead letter is kept until another queue has it." },
  ]],
  ["Delivery", [
    { key: "delivery-limit", ...COUNT, on: "quorum", keepsFrom: "classic", isOperators: true,
      hint: "A message dies when it has failed more often than so; negative: never." },
    { key: "delayed-retry-type", ...choice("all", "failed", "returned", "disabled"), on: "quorum", isOperators: true,
      hint: "Which messages wait before they are delivered again." },
    { key: "delayed-retry-min", ...MS, on: "quorum", isOperators: true, hint: "They wait so long for each failure." },
    { key: "delayed-retry-max", ...MS, on: "quorum", isOperators: true, hint: "But no longer than this." },
    { key: "consumer-timeout", ...MS, on: "quorum", hint: "A consumer must acknowledge within so long." },
  ]],
  ["Exchanges", [
    { key: "alternate-exchange", ...TEXT, of: "exchanges", on: "exchanges", hint: "Where messages go that match no binding." },
  ]],
];

/** Keys that are accepted and do nothing here. */
export const WITHOUT_EFFECT = [
  { key: "consumer-disconnected-timeout", ...MS },
  { key: "target-group-size", ...COUNT, keepsFrom: "classic", isOperators: true },
  { key: "max-in-memory-length", ...COUNT, keepsFrom: "classic", isOperators: true },
  { key: "max-in-memory-bytes", ...BYTES, keepsFrom: "classic", isOperators: true },
  { key: "queue-version", ...COUNT, isOperators: true },
  { key: "queue-mode", ...choice("default", "lazy"), keepsFrom: "quorum" },
  { key: "queue-leader-locator", ...TEXT },
];

const ALL = new Map([...GROUPS.flatMap(([, keys]) => keys), ...WITHOUT_EFFECT].map((one) => [one.key, one]));

/** What is known of a key; nothing of those that are not. */
export const settingOf = (key) => ALL.get(key);

/** A number with its unit in words: 60000 ms are 1 min. Nothing if that says no more. */
export function inWords(key, value) {
  const unit = ALL.get(key)?.unit;
  if (typeof value !== "number" || !unit) return "";
  if (unit === "ms") return value < 1000 ? "" : duration(value);
  return value < 1024 ? "" : bytes(value);
}

/** The value of a setting. */
export function Value({ name, value }) {
  if (value === null || value === undefined) return html`<span class="muted">none</span>`;
  if (value === "") return html`<span class="muted">${name.endsWith("-exchange") ? "(default exchange)" : "(empty)"}</span>`;
  const unit = ALL.get(name)?.unit;
  const words = inWords(name, value);
  return html`<span class="setting-value">${plain(value)}${typeof value === "number" && unit ? ` ${unit}` : ""}${words && html` <small class="muted">${words}</small>`}</span>`;
}

/** A definition: its keys and values. */
export const Definition = ({ definition }) => html`<dl class="definition wrap">${Object.entries(definition).map(([key, value]) => html`
  <div key=${key}><dt>${key}</dt><dd><${Value} name=${key} value=${value} /></dd></div>`)}</dl>`;
