// Which policy rules a queue or an exchange, and why each of its settings is as it is.

import { exchangePath, path } from "../api.js";
import { Card, Loaded } from "../components.js";
import { html } from "../html.js";
import { usePolled } from "../poll.js";
import { hrefWith } from "../router.js";
import { isPolicymaker } from "../session.js";
import { Value } from "./policy-keys.js";
import { Source } from "./source.js";

/** In a sentence: who rules. */
function Rulers({ told, noun }) {
  const { vhost, policy, operator_policy: operator } = told;
  const one = (source, name) => html`<${Source} vhost=${vhost} source=${source} name=${name} />`;
  if (!policy && !operator) return html`<p class="rulers" data-test="rulers">No policy rules this ${noun}.</p>`;
  return html`<p class="rulers" data-test="rulers">Ruled by ${policy && html`the ${one("policy", policy)}`}
    ${policy && operator ? " and " : ""}${operator && html`the ${one("operator_policy", operator)}`}:
    ${" "}of those whose pattern matches, the one with the highest priority.</p>`;
}

const Lost = ({ vhost, name: key, lost }) => html`<ul class="lost">${lost.map(({ source, source_name: name, value, why }, index) => html`
  <li key=${index}><s><${Value} name=${key} value=${value} /></s>${" "}of the <${Source} vhost=${vhost} source=${source} name=${name} />: ${why}</li>`)}</ul>`;

const Row = ({ vhost, entry }) => html`<tr data-test=${`setting-${entry.key}`}>
  <th scope="row">${entry.key}</th>
  <td data-label="in force"><${Value} name=${entry.key} value=${entry.value} /></td>
  <td data-label="given by"><${Source} vhost=${vhost} source=${entry.source} name=${entry.source_name} /></td>
  <td>${entry.lost.length > 0 && html`<${Lost} vhost=${vhost} name=${entry.key} lost=${entry.lost} />`}</td></tr>`;

const Rows = ({ vhost, entries, label }) => html`<div class="table-box" tabindex="0" role="region" aria-label=${label}>
  <table class="explanation"><thead><tr><th scope="col">Setting</th><th scope="col">In force</th><th scope="col">Given by</th><th scope="col">What lost, and why</th></tr></thead>
  <tbody>${entries.map((entry) => html`<${Row} key=${entry.key} vhost=${vhost} entry=${entry} />`)}</tbody></table></div>`;

/** What `explain` says, as it was answered. */
export function Explanation({ told }) {
  const noun = told.queue === undefined ? "exchange" : "queue";
  const isTelling = (entry) => entry.source !== "default" || entry.lost.length > 0;
  const [telling, silent] = [told.keys.filter(isTelling), told.keys.filter((entry) => !isTelling(entry))];
  return html`<${Rulers} told=${told} noun=${noun} />
    ${telling.length > 0 && html`<${Rows} vhost=${told.vhost} entries=${telling} label="Settings that somebody gave" />`}
    ${silent.length > 0 && html`<details class="defaults"><summary>${telling.length > 0 ? "What nobody has set" : `All settings have their defaults`}</summary>
      <${Rows} vhost=${told.vhost} entries=${silent} label="Settings with their defaults" /></details>`}`;
}

/** A card that explains a queue (`kind` is "queues") or an exchange ("exchanges"). */
export function Explain({ kind = "queues", vhost, name, intervalMs }) {
  const url = kind === "exchanges" ? exchangePath(vhost, name, "explain") : path(kind, vhost, name, "explain");
  const polled = usePolled(url, intervalMs);
  const pattern = `^${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`;
  const actions = isPolicymaker() && html`<a class="button" href=${hrefWith({ vhost, pattern }, "admin", "policies", "new")} data-test="policy-for">New policy for it</a>`;
  return html`<${Card} title="Settings in force, and why" isWide=${true} actions=${actions} test="explain">
    <${Loaded} polled=${polled}>${(told) => html`<${Explanation} told=${told} />`}<//>
  <//>`;
}
