// The effective settings of a queue that decide about the life of its messages.

import { Badge, Card, ExchangeLink, QueueLink } from "../../components.js";
import { bytes, count, duration, number } from "../../format.js";
import { html } from "../../html.js";
import { inForce } from "../../parts/fate.js";
import { Source } from "../../parts/source.js";
import { href } from "../../router.js";

const ROWS = [
  ["message-ttl", "Message TTL", duration],
  ["expires", "Queue expires when unused for", duration],
  ["max-length", "Length limit", (value) => count(value, "message")],
  ["max-length-bytes", "Length limit in bytes", bytes],
  ["overflow", "Overflow behaviour", String],
  ["dead-letter-exchange", "Dead-letter exchange"],
  ["dead-letter-routing-key", "Dead-letter routing key", String],
  ["dead-letter-strategy", "Dead-letter strategy", String],
  ["delivery-limit", "Delivery limit", (value) => (typeof value === "number" ? number(value) : String(value))],
  ["delivery-limit-action", "Delivery limit action", String],
];
// What their defaults are is worth telling only beside something else.
const BESIDE = { overflow: ["max-length", "max-length-bytes"], "dead-letter-strategy": ["dead-letter-exchange"], "delivery-limit-action": ["delivery-limit"] };

/** The settings with their sources; the tab Settings has all of them, and the values that lost. */
export function Settings({ vhost, name, explanation, edges }) {
  const keys = inForce(explanation);
  const shown = ROWS.filter(([key]) => keys[key] && (!BESIDE[key] || BESIDE[key].some((other) => keys[other])));
  const targets = [...new Set(edges.flatMap((edge) => edge.to_queues ?? []))];
  const value = ([key, , format]) => (key === "dead-letter-exchange"
    ? html`<${ExchangeLink} vhost=${vhost} name=${keys[key].value} />` : format(keys[key].value));
  return html`<${Card} title="Effective settings and their source" test="in-force"
    actions=${html`<a href=${href("queues", vhost, name, "settings")}>All settings</a>`}>
    ${shown.length === 0 && html`<p class="muted">No TTL, no limit, no dead-letter exchange.</p>`}
    <dl class="in-force">${shown.map((row) => html`<div key=${row[0]}>
      <dt>${row[1]}</dt><dd>${value(row)} <${GivenBy} vhost=${vhost} of=${keys[row[0]]} /></dd></div>`)}
      ${targets.length > 0 && html`<div key="targets"><dt>Dead letters go to</dt><dd>${targets.map((target, index) => html`<span key=${target}>
        ${index > 0 && ", "}<${QueueLink} vhost=${vhost} name=${target} /></span>`)}</dd></div>`}
    </dl><//>`;
}

/** The source of a value. */
function GivenBy({ vhost, of: { source, source_name: name } }) {
  if (source === "default") return html`<small>default</small>`;
  return html`<${Badge}><${Source} vhost=${vhost} source=${source} name=${name} /><//>`;
}
