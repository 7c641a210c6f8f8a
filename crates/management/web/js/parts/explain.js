// The policies of a queue or an exchange, and the source of each setting.

import { exchangePath, path } from "../api.js";
import { Card, Loaded } from "../components.js";
import { html } from "../html.js";
import { usePolled } from "../poll.js";
import { hrefWith } from "../router.js";
import { isPolicymaker } from "../session.js";
import { Value } from "./policy-keys.js";
import { Source } from "./source.js";

/** The policies that apply, in a sentence. */
function Rulers({ told, noun }) {
  const { vhost, policy, operator_policy: operator } = told;
  const one = (source, name) => html`<${Source} vhost=${vhost} source=${source} name=${name} />`;
  if (!policy && !operator) return html`<p class="rulers" data-test="rulers">No policy applies to this ${noun}.</p>`;
  return html`<p class="rulers" data-test="rulers">Policies in effect: ${policy && html`the ${one("policy", policy)}`}
    ${policy && operator ? " and " : ""}${operator && html`the ${one("operator_policy", operator)}`}.
    ${" "}Of all policies that match, the one with the highest priority applies.</p>`;
}

const Lost = ({ vhost, name: key, lost }) => html`<ul class="lost">${lost.map(({ source, source_name: name, value, why }, index) => html`
  <li key=${index}><s><${Value} name=${key} value=${value} /></s>${" "}of the <${Source} vhost=${vhost} source=${source} name=${name} />: ${why}</li>`)}</ul>`;

const Row = ({ vhost, entry }) => html`<tr data-test=${`setting-${entry.key}`}>
  <th scope="row">${entry.key}</th>
  <td data-label="value"><${Value} name=${entry.key} value=${entry.value} /></td>
  <td data-label="source"><${Source} vhost=${vhost} source=${entry.source} name=${entry.source_name} /></td>
  <td>${entry.lost.length > 0 && html`<${Lost} vhost=${vhost} name=${entry.key} lost=${entry.lost} />`}</td></tr>`;

const Rows = ({ vhost, entries, label }) => html`<div class="table-box" tabindex="0" role="region" aria-label=${label}>
  <table class="explanation"><thead><tr><th scope="col">Setting</th><th scope="col">Effective value</th><th scope="col">Source</th><th scope="col">Overridden values, and why</th></tr></thead>
  <tbody>${entries.map((entry) => html`<${Row} key=${entry.key} vhost=${vhost} entry=${entry} />`)}</tbody></table></div>`;

/** The answer of `explain`. */
export function Explanation({ told }) {
  const noun = told.queue === undefined ? "exchange" : "queue";
  const isTelling = (entry) => entry.source !== "default" || entry.lost.length > 0;
  const [telling, silent] = [told.keys.filter(isTelling), told.keys.filter((entry) => !isTelling(entry))];
  return html`<${Rulers} told=${told} noun=${noun} />
    ${telling.length > 0 && html`<${Rows} vhost=${told.vhost} entries=${telling} label="Settings from arguments and policies" />`}
    ${silent.length > 0 && html`<details class="defaults"><summary>${telling.length > 0 ? "Settings with their defaults" : "All settings have their defaults"}</summary>
      <${Rows} vhost=${told.vhost} entries=${silent} label="Settings with their defaults" /></details>`}`;
}

/** A card that explains a queue (`kind` is "queues") or an exchange ("exchanges"). */
export function Explain({ kind = "queues", vhost, name, intervalMs }) {
  const url = kind === "exchanges" ? exchangePath(vhost, name, "explain") : path(kind, vhost, name, "explain");
  const polled = usePolled(url, intervalMs);
  const pattern = `^${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`;
  const actions = isPolicymaker() && html`<a class="button" href=${hrefWith({ vhost, pattern }, "admin", "policies", "new")} data-test="policy-for">Add a policy</a>`;
  return html`<${Card} title="Effective settings and their source" isWide=${true} actions=${actions} test="explain">
    <${Loaded} polled=${polled}>${(told) => html`<${Explanation} told=${told} />`}<//>
  <//>`;
}
