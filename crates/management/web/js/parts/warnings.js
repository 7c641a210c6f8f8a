// Warnings of the dead-letter map: what is wrong, in a word, with a sign, and in a sentence.

import { Badge, QueueLink } from "../components.js";
import { number } from "../format.js";
import { html } from "../html.js";

/** What kinds of warnings are called in a few letters. */
export const KINDS = {
  exchange_missing: "exchange missing",
  unroutable: "not routed to any queue",
  loop: "loop",
  no_consumer: "no consumer",
  shorter_ttl: "expires in the target, too",
  limit: "length limit",
};

const SIGNS = { error: "\u2716", warning: "\u26a0", info: "\u2139" };
const ORDER = ["error", "warning", "info"];

/** The sign of a severity: its shape says the same as its colour. */
export const sign = (severity) => SIGNS[severity] ?? SIGNS.info;

/** What a kind is called. */
export const kindName = (kind) => KINDS[kind] ?? kind.replaceAll("_", " ");

/** The queue that a warning is about: of those about where dead letters come to, that one. */
export const about = ({ queue, to_queue: to }) => to ?? queue;

/** The worst first. */
export const bySeverity = (warnings) =>
  [...warnings].sort((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity));

/** A list of them, each with the queue it is about. */
export function Warnings({ warnings, hasQueue = true, max = 20, test = "warnings" }) {
  const sorted = bySeverity(warnings);
  const line = (warning, index) => html`<li key=${index} class=${`warning-line is-${warning.severity}`} data-test="warning">
    <span class="warning-sign" aria-hidden="true">${sign(warning.severity)}</span>
    <div>${hasQueue && html`<${QueueLink} vhost=${warning.vhost} name=${about(warning)} /> `}
      <${Badge} kind=${{ error: "danger", warning: "warning" }[warning.severity] ?? ""}>${kindName(warning.kind)}<//>
      <p>${warning.text}</p></div></li>`;
  return html`<div data-test=${test}><ul class="warnings">${sorted.slice(0, max).map(line)}</ul>
    ${sorted.length > max && html`<details class="disclosure"><summary>${number(sorted.length - max)} more</summary>
      <ul class="warnings">${sorted.slice(max).map(line)}</ul></details>`}</div>`;
}
