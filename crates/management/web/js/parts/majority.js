// Which vhosts have a majority of their members, and which would have none without a node.

import { html } from "../html.js";
import { State } from "../components.js";
import { count, noun, number, visible } from "../format.js";

const NAMED_MAX = 5;

/** How many members are a majority. */
const majorityOf = (members) => Math.floor(members.length / 2) + 1;

/** Members of a vhost that run; `running` is a set of names. */
export const runningOf = ({ members }, running) => members.filter((member) => running.has(member));

/** True if a majority of the members runs. */
export const hasMajority = (vhost, running) => runningOf(vhost, running).length >= majorityOf(vhost.members);

/** True if a majority of the members runs only as long as this node does. */
const needs = (vhost, node, running) => hasMajority(vhost, running) && vhost.members.includes(node)
  && runningOf(vhost, running).length - 1 < majorityOf(vhost.members);

/** How many members run, `[colour, words]`. */
export function majorityState(vhost, running) {
  const [up, all] = [runningOf(vhost, running).length, vhost.members.length];
  const words = `${number(up)} of ${number(all)} run`;
  if (up < majorityOf(vhost.members)) return ["danger", `${words}: no majority`];
  return up - 1 < majorityOf(vhost.members) ? ["warning", `${words}: none may stop`] : ["good", words];
}

const named = (vhosts) => {
  const more = vhosts.length - NAMED_MAX;
  return vhosts.slice(0, NAMED_MAX).map(({ name }) => visible(name)).join(", ") + (more > 0 ? ` and ${number(more)} more` : "");
};

/** What a stop of each running node would take with it, in sentences. */
export function Stops({ vhosts, running }) {
  const without = vhosts.filter((vhost) => !hasMajority(vhost, running));
  const stops = [...running].map((node) => [node, vhosts.filter((vhost) => needs(vhost, node, running))]).filter(([, lost]) => lost.length > 0);
  return html`
    ${without.length > 0 && html`<p data-test="without-majority"><${State} kind="danger">${count(without.length, "virtual host")} ${noun(without.length, "has", "have")} no majority now<//>: <span class="name">${named(without)}</span>. Nothing is confirmed there.</p>`}
    ${stops.map(([node, lost]) => html`<p key=${node} data-test="stop"><${State} kind="warning">If ${node} stopped<//>, ${count(lost.length, "virtual host")} would have no majority: <span class="name">${named(lost)}</span>.</p>`)}
    ${without.length === 0 && stops.length === 0 && html`<p data-test="no-stop"><${State} kind="good">Every virtual host keeps a majority if any one node stops<//>.</p>`}`;
}
