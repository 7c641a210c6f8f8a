// One message: a line that opens into what it is and what it has been through.

import { Badge, ExchangeLink, QueueLink, Values } from "../components.js";
import { ago, bytes, count, moment } from "../format.js";
import { classes, html } from "../html.js";
import { withQuery } from "../api.js";
import { href } from "../router.js";
import { Countdown, useNow } from "./countdown.js";
import { REASONS, story } from "./deaths.js";
import { Payload } from "./payload.js";
import { Words } from "./words.js";

const PREVIEW = 140;
const PERHAPS = "The broker crashed: it cannot exclude that the message was delivered before the crash";

function deliveredBefore({ delivery_count: deliveries, redelivered, redelivered_uncertain: isUncertain }) {
  if (deliveries) return count(deliveries, "time");
  if (!redelivered) return "no";
  return isUncertain ? "perhaps (broker crashed)" : "yes";
}

/** When a message expires; an unacknowledged one expires only if it is returned. */
function Expiry({ message: { expires_ms: at, state } }) {
  const isHeld = state === "unacknowledged";
  if (useNow() >= at) return isHeld ? "expires when returned" : "expires now";
  return html`${isHeld ? "unless acknowledged, expires in " : "expires in "}<${Countdown} to=${at} />`;
}

/** What a line shows of a body. */
function preview({ payload, payload_encoding: encoding, payload_bytes: size }) {
  if (size === 0) return html`<i class="muted">empty</i>`;
  if (encoding === "base64") return html`<i class="muted">${bytes(size)}, binary</i>`;
  const text = payload.slice(0, PREVIEW).replace(/\s+/g, " ");
  return html`<span class="preview">${text}${payload.length > PREVIEW ? "\u2026" : ""}</span>`;
}

/** A message in a list. */
export function Message({ message, vhost, queue, isOpen, onToggle, isChosen, onChoose }) {
  const [last] = message.deaths ?? [];
  const body = `message-${message.id}`;
  return html`<li class=${classes("browsed-one", isOpen && "is-open", isChosen && "is-chosen")} data-test="message">
    <div class="browsed-line">
      ${onChoose && html`<input type="checkbox" checked=${isChosen} onInput=${onChoose} aria-label="Select this message" data-test="choose" />`}
      <button type="button" class="browsed-toggle" aria-expanded=${isOpen} aria-controls=${body} onClick=${onToggle} data-test="open">
        <span class="fold" aria-hidden="true">${isOpen ? "\u25be" : "\u25b8"}</span>
        <span class="browsed-key"><b>${message.routing_key || html`<i>no key</i>`}</b> ${preview(message)}</span>
        <span class="browsed-marks">
          ${last && html`<${Badge} kind="warning" title=${`Died last in queue ${last.queue}`}>${REASONS[last.reason] ?? last.reason} in ${last.queue}<//>`}
          ${message.deaths?.length > 1 && html`<${Badge}>${count(message.deaths.reduce((sum, death) => sum + death.count, 0), "death")}<//>`}
          ${message.redrives?.length > 0 && html`<${Badge} kind="accent">redriven ${count(message.redrives.length, "time")}<//>`}
          ${message.redelivered && (message.redelivered_uncertain
            ? html`<${Badge} title=${PERHAPS}>perhaps redelivered<//>`
            : html`<${Badge} title="Delivered before, and returned to the queue">redelivered<//>`)}
        </span>
        <span class="browsed-time">${message.expires_ms !== null && message.expires_ms !== undefined
          ? html`<span><${Expiry} message=${message} /></span>`
          : html`<span></span>`}
          <span class="muted">${moment(message.arrived_ms)}</span></span>
      </button>
    </div>
    ${isOpen && html`<div class="browsed-body" id=${body}><${Body} message=${message} vhost=${vhost} queue=${queue} /></div>`}
  </li>`;
}

function Body({ message, vhost, queue }) {
  const { headers = {}, ...properties } = message.properties ?? {};
  return html`
    <section><h3>History</h3><${Timeline} message=${message} vhost=${vhost} queue=${queue} />
      ${message.deaths?.length > 0 && properties.message_id && html`<p><a href=${withQuery(href("dead-letters", "history"), { vhost, message_id: properties.message_id })} data-test="each-death">Each death, with the consumer and the policy</a></p>`}</section>
    <section><h3>Body</h3><${Payload} message=${message} /></section>
    <section><h3>Headers</h3><${Headers} headers=${headers} /></section>
    <section><h3>Properties and routing</h3><${Values} table=${properties} empty="No properties." />
      <dl class="values place">
        <div><dt>exchange</dt><dd><${ExchangeLink} vhost=${vhost} name=${message.exchange} /></dd></div>
        <div><dt>routing key</dt><dd>${message.routing_key}</dd></div>
        <div><dt>queue</dt><dd><${QueueLink} vhost=${vhost} name=${queue} /></dd></div>
        ${typeof message.position === "number" && html`<div><dt>position in the queue</dt><dd>${message.position + 1}</dd></div>`}
        <div><dt>delivered before</dt><dd><span title=${message.redelivered_uncertain ? PERHAPS : undefined} data-test="delivered-before">${deliveredBefore(message)}</span></dd></div>
      </dl></section>`;
}

/** Headers of the publisher; those that the broker wrote about deaths are folded away. */
function Headers({ headers }) {
  const isOfBroker = ([name]) => /^x-(death|first-death-|last-death-|redrive)/.test(name);
  const all = Object.entries(headers);
  const written = all.filter(isOfBroker);
  return html`<${Values} table=${Object.fromEntries(all.filter((header) => !isOfBroker(header)))} empty=${written.length > 0 ? "No other headers." : "No headers."} />
    ${written.length > 0 && html`<details class="disclosure"><summary>${count(written.length, "header")} about deaths</summary>
      <${Values} table=${Object.fromEntries(written)} /></details>`}`;
}

const MARKS = { publish: "\u2192", death: "\u2020", sent: "\u21b3", redrive: "\u21ba", wait: "\u2026", end: "\u25f7" };

/** What happened to a message, oldest first, and what will. */
export function Timeline({ message, vhost, queue }) {
  const now = useNow();
  return html`<ol class="timeline" data-test="timeline">${story(message, queue).map(({ at, kind, parts }, index) => html`
    <li key=${index} class=${`is-${kind}`} data-test=${`step-${kind}`}>
      <time title=${at === null ? undefined : ago(at, now)}>${at === null ? "" : moment(at)}</time>
      <span class="timeline-mark" aria-hidden="true">${MARKS[kind]}</span>
      <span>${kind === "end" ? html`<${Expiry} message=${message} />` : html`<${Words} parts=${parts} vhost=${vhost} />`}</span>
    </li>`)}</ol>`;
}
