// Delays of the dead-letter map: delayed exchanges, delayed retry, and messages before their delivery time.

import { ExchangeLink, QueueLink } from "../../components.js";
import { DASH, compact, count, duration, moment, number } from "../../format.js";
import { html } from "../../html.js";
import { Table } from "../../table.js";

/** Letters of a rule beside a line of the picture; the table has all of it. */
const RULE_LETTERS_MAX = 30;
const LETTER = 6.4;
const LINE_HEIGHT = 14;

/** The delays of a retry: "1s, 5s, 30s", or "1 s to 1 min, \u00d7 2, \u00b1 20 %". */
export function ruleOf(retry) {
  if (retry === null) return "as asked for each delivery";
  const { min_ms: min, max_ms: max, multiplier, jitter, schedule } = retry;
  const growth = multiplier === null || multiplier === 1 ? null : `\u00d7 ${number(multiplier)}`;
  const parts = schedule !== null
    ? schedule.split(",").map((one) => one.trim())
    : [min === max || multiplier === 1 ? duration(min) : `${duration(min)} to ${duration(max)}`, growth];
  return [...parts, jitter ? `\u00b1 ${number(jitter * 100)} %` : null].filter(Boolean).join(", ");
}

/** The time after which messages of an edge expire; null if only single messages do. */
export function expiryOf({ ttl_min_ms: min, ttl_max_ms: max, next_expiry_time_ms: next }) {
  if (min === null || min === undefined) return next ? "TTL of each message" : null;
  return min === max ? `after ${duration(min)}` : `after ${duration(min)} to ${duration(max)}`;
}

const WORDS = { retry: "before their next delivery", schedule: "before their delivery time", exchange: "in the delayed exchange" };

/** A delay as a sentence without its end. */
const spoken = (delay) => [
  delay.kind === "retry" && `returned messages wait ${ruleOf(delay.retry)}`,
  `${count(delay.messages, "message")} ${delay.messages === 1 ? "waits" : "wait"} ${WORDS[delay.kind]}`,
].filter(Boolean).join(", ");

/** The label of lines; its size depends on nothing that changes with each message. */
export const labelOfLines = (lines, { fixed = 0, height = 2, isMoving = false, title = null } = {}) => ({
  lines, isMoving, title, width: Math.max(96, ...lines.slice(0, fixed).map((line) => line.length * LETTER)), height: height * LINE_HEIGHT + 2,
});

const clipped = (text) => (text.length > RULE_LETTERS_MAX ? `${text.slice(0, RULE_LETTERS_MAX - 1)}\u2026` : text);

const waiting = ({ messages }, word) => `${compact(messages)} ${word}`;

/** Adds the delays to a graph: `node` and `link` are those of `graphOf`. */
export function addDelays(delays, { node, link }) {
  const inQueues = delays.filter((delay) => delay.kind !== "exchange");
  for (const [, some] of Map.groupBy(inQueues, (delay) => JSON.stringify([delay.vhost, delay.from_queue]))) {
    const [{ vhost, from_queue: name, from_queues: names, from_queues_total: total, retry }] = some;
    const at = total > 1
      ? node("group", vhost, name, { way: ["", JSON.stringify(retry), "retry"], names, total, severity: null, title: count(total, "queue"), filter: "" })
      : node("queue", vhost, name);
    at.delays = some.map(spoken);
    const rules = some.filter((delay) => delay.kind === "retry").map((delay) => clipped(ruleOf(delay.retry)));
    const waits = some.filter((delay) => delay.messages > 0).map((delay) => waiting(delay, delay.kind === "retry" ? "to retry" : "scheduled"));
    const label = labelOfLines([...rules, ...waits], { fixed: rules.length, height: rules.length + some.length, isMoving: waits.length > 0, title: at.delays.join("; ") });
    link(at, at, { label });
  }
  for (const delay of delays.filter((one) => one.kind === "exchange")) {
    const { vhost, exchange, certain: isCertain } = delay;
    const from = node("exchange", vhost, exchange, { way: ["", "x-delayed-message"], text: `${compact(delay.messages)} delayed`, isDelayed: true });
    from.delays = [spoken(delay)];
    const targets = delay.to_queues.map((name) => node("queue", vhost, name));
    const left = delay.to_queues_total - delay.to_queues.length;
    if (left > 0) targets.push(node("more", vhost, `and ${count(left, "more queue")}`, { way: [exchange, "x-delayed-message"] }));
    if (targets.length === 0) targets.push(node(delay.anywhere ? "anywhere" : "nowhere", vhost, exchange, { way: ["x-delayed-message"] }));
    const next = delay.next_time_ms === null ? "no message" : `next ${moment(delay.next_time_ms)}`;
    targets.forEach((to, index) => link(from, to, { isCertain, label: index === 0 ? labelOfLines([next], { height: 1, isMoving: delay.messages > 0 }) : null }));
  }
}

const KINDS = { exchange: "delayed exchange", retry: "delayed retry", schedule: "delivery time" };

const Where = ({ delay }) => (delay.kind === "exchange"
  ? html`<${ExchangeLink} vhost=${delay.vhost} name=${delay.exchange} />`
  : html`<${QueueLink} vhost=${delay.vhost} name=${delay.from_queue} />${delay.from_queues_total > 1 && ` and ${count(delay.from_queues_total - 1, "other queue")}`}`);

const Targets = ({ delay }) => {
  if (delay.kind !== "exchange") return html`<span class="muted">the same queue</span>`;
  if (delay.to_queues.length === 0) return html`<span class="muted">${delay.anywhere ? "the queue that the key names" : "no queue"}</span>`;
  const left = delay.to_queues_total - delay.to_queues.length;
  return delay.to_queues.map((name, index) => html`<span key=${name}>${index > 0 && ", "}<${QueueLink} vhost=${delay.vhost} name=${name} /></span>`)
    .concat(left > 0 ? ` and ${number(left)} more` : []);
};

const COLUMNS = [
  { key: "where", title: "Waits in", render: (delay) => html`<${Where} delay=${delay} />` },
  { key: "kind", title: "Because of", width: "8rem", render: (delay) => KINDS[delay.kind] },
  { key: "delays", title: "Delays", phone: 1, width: "8rem", render: (delay) => (delay.kind === "retry" ? ruleOf(delay.retry) : html`<span class="muted">of each message</span>`) },
  { key: "to", title: "Goes to", width: "8rem", render: (delay) => html`<${Targets} delay=${delay} />` },
  { key: "messages", title: "Waiting", width: "5rem", phone: 2, align: "right", render: (delay) => number(delay.messages) },
  { key: "next", title: "Next", width: "5rem", align: "right", render: (delay) => (delay.next_time_ms === null ? DASH : moment(delay.next_time_ms)) },
  { key: "vhost", title: "Vhost", width: "5rem", render: (delay) => delay.vhost },
];

/** How many of the delays an answer has. */
export function shownDelays({ delays, delay_entries: entries, filtered_delays: filtered }) {
  if (filtered === 0) return null;
  return entries > delays.length
    ? `${number(delays.length)} of ${count(entries, "delay")} are shown, those with the most messages`
    : count(filtered, "delay");
}

/** The delays of a map, as rows. */
export const Delays = ({ map }) => map.delays.length > 0 && html`<section><h2>Delays</h2>
  <p class="muted" data-test="delay-count">${shownDelays(map)}.</p>
  <${Table} columns=${COLUMNS} rows=${map.delays} label="Delays" test="delays" rowKey=${(delay) => JSON.stringify([delay.vhost, delay.kind, delay.exchange, delay.from_queue])} />
</section>`;
