// The life of a queue in one view: what happens to its messages, when, how fast and why.

import { path } from "../../api.js";
import { levelLine, Chart, useRange, withRange } from "../../chart.js";
import { Card, Loaded, Stat, Waiting } from "../../components.js";
import { DASH, compact, duration, number, rate } from "../../format.js";
import { html, useMemo } from "../../html.js";
import { Age, Countdown } from "../../parts/countdown.js";
import { deathLines, deliveryLines, flowLines } from "../../parts/flow.js";
import { because, fate, inForce } from "../../parts/fate.js";
import { Histogram } from "../../parts/histogram.js";
import { Warnings, about } from "../../parts/warnings.js";
import { Words, plainWords } from "../../parts/words.js";
import { usePolled } from "../../poll.js";
import { href } from "../../router.js";
import { Stats } from "../../stats.js";
import { Amounts } from "./amounts.js";
import { Holders } from "./holders.js";
import { Settings } from "./in-force.js";

const SLOWLY_MS = 15_000;

/** What changes with the topology only. */
function useTopology(vhost, name) {
  const explained = usePolled(path("queues", vhost, name, "explain"), SLOWLY_MS);
  const map = usePolled(`${path("dead-letter-map", vhost)}?page=1&page_size=500&name=${encodeURIComponent(name)}`, SLOWLY_MS);
  return useMemo(() => ({
    explanation: explained.data,
    edges: (map.data?.edges ?? []).filter((edge) => edge.from_queue === name),
    warnings: (map.data?.warnings ?? []).filter((warning) => about(warning) === name || warning.queues?.includes(name)),
  }), [explained.data, map.data, name]);
}

/** The tab. */
export default function Life({ vhost, name }) {
  const [range, picker] = useRange({ isShort: true });
  const polled = usePolled(withRange(path("queues", vhost, name), range));
  const { data: expiry, isStale } = usePolled(path("queues", vhost, name, "expiry"));
  const topology = useTopology(vhost, name);
  return html`<${Loaded} polled=${polled} gone="This queue does not exist (any more).">
    ${(queue) => html`<div class="life" data-test="life">
      <${Fate} vhost=${vhost} ...${topology} />
      <${Figures} queue=${queue} expiry=${expiry} isStale=${isStale} explanation=${topology.explanation} />
      <div class="charts-head"><h2>Messages and rates</h2><span class="gap"></span>${picker}</div>
      <div class="cards"><${Charts} queue=${queue} range=${range} />
        <${Card} title="Time to expiry" test="expiry-card">${expiry
          ? html`<${Histogram} expiry=${expiry} />` : html`<p class="muted"><${Waiting} /></p>`}<//>
        <${Amounts} queue=${queue} /></div>
      <${Settings} vhost=${vhost} name=${name} explanation=${topology.explanation} edges=${topology.edges} />
      <${Holders} vhost=${vhost} queue=${queue} />
    </div>`}<//>`;
}

/** What happens to a message in this queue, and the warnings. */
function Fate({ vhost, explanation, edges, warnings }) {
  if (!explanation) return html`<p class="fate muted"><${Waiting} /></p>`;
  return html`<section class="fate" aria-label="What happens to a message here">
    <p data-test="fate">${fate(explanation, edges).map((parts, index) => html`<span key=${index}><${Words} parts=${parts} vhost=${vhost} />${" "}</span>`)}</p>
    ${warnings.length > 0 && html`<${Warnings} warnings=${warnings} hasQueue=${false} />`}
  </section>`;
}

/** The last time for which the age of the oldest message is known: it expires then at the latest. */
function oldestUntil({ now_ms: at, oldest_age_ms: age, next_deadline_ms: next, message_ttl_ms: ttl }) {
  return Math.max(at, Math.min(next ?? Infinity, typeof ttl === "number" ? at - age + ttl : Infinity));
}

/** Figures that are not above the tabs. */
function Figures({ queue, expiry, isStale, explanation }) {
  const browse = (state) => `${href("queues", queue.vhost, queue.name, "messages")}?state=${state}`;
  const { oldest_age_ms: age = null, next_deadline_ms: next = null } = expiry ?? {};
  const own = explanation && inForce(explanation)["message-ttl"];
  return html`<${Stats}>
    <${Stat} label="Oldest" test="oldest" hint="Age of the oldest message in the queue"
      value=${age === null ? DASH : html`<${Age} since=${expiry.now_ms - age} at=${expiry.now_ms} until=${oldestUntil(expiry)} isStale=${isStale} />`} />
    <${Stat} label="Next expiry" test="next-deadline" hint="Time until the next message expires"
      value=${next === null ? DASH : html`<${Countdown} to=${next} at=${expiry.now_ms} isStale=${isStale} />`} />
    <${Stat} label="TTL" value=${own ? html`<span class="countdown">${duration(own.value)}</span>` : "none"} hint=${own ? plainWords(because(own)).trim() : ""} test="ttl" />
    ${queue.held_until_ms > 0 && html`<${Stat} label="Held" hint="Strict order of retries: a returned message waits, and all others behind it" test="held-until"
      value=${expiry ? html`<${Countdown} to=${queue.held_until_ms} at=${expiry.now_ms} isStale=${isStale} />` : DASH} />`}
    ${queue.messages_delayed > 0 && html`<${Stat} label="Delayed" value=${number(queue.messages_delayed)} href=${browse("delayed")} hint="Returned, or with a delivery time, and waiting to be ready" />`}
    ${queue.messages_dlx > 0 && html`<${Stat} label="Dead letters kept" value=${number(queue.messages_dlx)} href=${browse("dead")} hint="Dead messages that the queue keeps: at-least-once, or at the delivery limit" />`}
  <//>`;
}

const depth = (queue) => [
  levelLine("Ready", queue.messages_ready_details, queue.messages_ready),
  levelLine("Unacknowledged", queue.messages_unacknowledged_details, queue.messages_unacknowledged),
  levelLine("Total", queue.messages_details, queue.messages),
];
const flow = (queue) => flowLines(queue.message_stats);
const deliveries = (queue) => deliveryLines(queue.message_stats);
const deaths = (queue) => deathLines(queue.message_stats);

function Charts({ queue, range }) {
  const source = { url: path("queues", queue.vhost, queue.name), isShort: true };
  return html`<${Chart} title="Messages" lines=${depth} data=${queue} source=${source} range=${range} test="chart-depth" />
    <${Chart} title="Message rates" lines=${flow} data=${queue} source=${source} format=${rate} range=${range} test="chart-flow" />
    <${Chart} title="Deliveries" lines=${deliveries} data=${queue} source=${source} format=${rate} range=${range} test="chart-deliveries" />
    ${deaths(queue).length > 0
      ? html`<${Chart} title="Deaths" lines=${deaths} data=${queue} source=${source} format=${rate} range=${range} test="chart-deaths" />`
      : html`<${Card} title="Deaths"><p class="muted">No message has died here since the queue was declared or the broker started.</p><//>`}`;
}
