// How a redrive looks.

import { Meter, State } from "../components.js";
import { number } from "../format.js";
import { html } from "../html.js";

const KINDS = { running: "warning", finished: "good", failed: "danger", cancelled: "" };

/** Where a redrive sends messages, in words. */
export function target(to) {
  if (to === "origin") return "the queue where each message died last";
  if (to === "first") return "the queue where each message died first";
  if (to?.queue !== undefined) return `queue ${to.queue}`;
  const key = to?.routing_key === undefined || to.routing_key === null ? "" : ` with key ${to.routing_key}`;
  return `exchange ${to?.exchange || "(default exchange)"}${key}`;
}

/** Its state as a word. */
export const RedriveState = ({ state }) => html`<${State} kind=${KINDS[state] ?? ""}><span data-test="state">${state}</span><//>`;

/** How much of the queue has been scanned. */
export function Progress({ job, isLarge = false }) {
  const { scanned, messages_total: total, state } = job;
  const done = state === "finished" ? total : Math.min(scanned, total);
  return html`<div class=${isLarge ? "progress is-large" : "progress"}><${Meter} used=${done || (state === "finished" ? 1 : 0)} total=${total || 1} label="Progress" isBad=${state === "failed"}
    text=${isLarge ? `${number(scanned)} of ${number(total)} scanned` : `${number(scanned)} of ${number(total)}`} /></div>`;
}
