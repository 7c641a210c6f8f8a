// Refused publishes and lost dead letters: what a queue warns of.

import { html } from "../html.js";
import { number, rate } from "../format.js";
import { href } from "../router.js";

const rateAt = (queue, name) => queue.message_stats?.[`${name}_details`]?.rate ?? 0;

/** True if the queue is full and refuses publishes, or has just refused some. */
export const isRefusing = (queue) => queue.refuses_publishes === true || rateAt(queue, "refused") > 0;

/** True if dead letters of the queue are being lost. */
export const isLosing = (queue) => rateAt(queue, "dead_letters_lost") > 0;

const STATES = {
  running: ["good", "running", "running"],
  minority: ["danger", "minority", "No leader: a majority of the members of its virtual host is not up"],
  down: ["danger", "down", "No node leads its virtual host"],
};

/** The state of a queue as `[colour, word, sentence]`. */
export function queueState(queue) {
  if (isRefusing(queue)) return ["warning", "full", "Full: refuses publishes"];
  if (isLosing(queue)) return ["danger", "losing", "Dead letters are lost: no queue accepts them"];
  return STATES[queue.state] ?? ["warning", queue.state, queue.state];
}

const perSecond = (queue, name) => {
  const { [name]: total = 0 } = queue.message_stats ?? {};
  return `${rate(rateAt(queue, name))}, ${number(total)} in total`;
};

/** Warnings above the tabs of a queue. */
export const LossWarnings = ({ vhost, queue }) => html`
  ${isRefusing(queue) && html`<p class="banner warning" role="status" data-test="full"><b>Full: refuses publishes</b> (${perSecond(queue, "refused")}).
    Publishers with confirms receive basic.nack; other publishers are not told. <a href=${href("queues", vhost, queue.name, "settings")}>Limits of the queue</a></p>`}
  ${isLosing(queue) && html`<p class="banner danger" role="status" data-test="losing"><b>Dead letters are lost</b> (${perSecond(queue, "dead_letters_lost")}):
    no queue accepts them. <a href=${href("dead-letters")}>Dead-letter map</a></p>`}`;
