// What an import of definitions would change, and the question before it is done.

import { path, request } from "../api.js";
import { Dialog, openDialog } from "../dialog.js";
import { count, number, plain } from "../format.js";
import { ActionForm } from "../forms.js";
import { html } from "../html.js";
import { session } from "../session.js";

/** The families of definitions, in the order of an import. */
export const FAMILIES = [
  ["users", "user"], ["vhosts", "vhost"], ["permissions", "permission"], ["topic_permissions", "topic permission"],
  ["global_parameters", "global parameter"], ["parameters", "parameter"], ["policies", "policy", "policies"],
  ["exchanges", "exchange"], ["queues", "queue"], ["bindings", "binding"],
];

/** What becomes of an item; those that are equal are counted only. */
const CHANGES = [
  ["new", "New", "created by the import"],
  ["changed", "Replaced", "exists and differs from the file"],
  ["kept", "Kept", "exists with other properties and stays as it is"],
  ["equal", "Equal", "exists and is the same"],
  ["skipped", "Skipped", "left out: a reserved name, or a feature that Leveret does not have"],
];

/** Where definitions are taken out of and put into. */
export const pathOf = (vhost) => (vhost === undefined ? path("definitions") : path("definitions", vhost));

const ask = (vhost, text, isDry) => request("POST", `${pathOf(vhost)}${isDry ? "?dry_run=true" : ""}`, text, { isText: true });

/** Shows what the import of a file would change, and imports it if that is meant; true if it was done. */
export async function importAsked({ vhost, file }) {
  const told = JSON.parse(await ask(vhost, file.text, true));
  return openDialog((close) => html`<${Question} vhost=${vhost} file=${file} told=${told} close=${close} />`);
}

const total = (told, change) => FAMILIES.reduce((sum, [family]) => sum + (told[family]?.[change] ?? 0), 0);

function Question({ vhost, file, told, close }) {
  const run = async () => {
    await ask(vhost, file.text, false);
    close(true);
  };
  const [isNew, changed, kept] = ["new", "changed", "kept"].map((change) => total(told, change));
  const me = session.get()?.name;
  const mine = told.users.items.find(({ name, change }) => name === me && change === "changed");
  const isLoggedOut = mine?.differences.some(({ field }) => field === "password");
  const nothing = isNew + changed === 0;
  return html`<${Dialog} title=${`Import ${file.name}${vhost === undefined ? "" : ` into vhost ${vhost}`}?`} onClose=${() => close(false)} isWide=${true} isDangerous=${true} test="import-dialog">
    <p data-test="import-summary">${nothing ? "This changes nothing: everything in the file exists already." : html`<b>${number(isNew)}</b> new, <b>${number(changed)}</b> replaced. Nothing is removed, and what is replaced cannot be undone.`}
      ${kept > 0 && ` ${count(kept, "existing queue or exchange has", "existing queues and exchanges have")} other properties and ${kept === 1 ? "stays as it is" : "stay as they are"}.`}</p>
    ${mine && html`<p class="banner warning" data-test="import-own-user">Your own user ${me} is replaced${isLoggedOut ? " and gets another password: you will be logged out" : ""}.</p>`}
    <${Counts} told=${told} />
    <${ActionForm} onSubmit=${run} action="Import" done=${`Imported: ${file.name}`} isDangerous=${changed > 0} onCancel=${() => close(false)} test="import-question">
      <div class="is-wide">${CHANGES.filter(([change]) => change !== "equal").map(([change, title, what]) => html`
        <${Items} key=${change} told=${told} change=${change} title=${title} what=${what} />`)}</div>
    <//><//>`;
}

/** How many of each family, by what becomes of them. */
function Counts({ told }) {
  const rows = FAMILIES.filter(([family]) => CHANGES.some(([change]) => told[family]?.[change] > 0));
  const shown = CHANGES.filter(([change]) => total(told, change) > 0);
  if (rows.length === 0) return null;
  return html`<div class="table-box" tabindex="0" role="region" aria-label="Changes by family"><table class="import-counts" data-test="import-counts">
    <thead><tr><th scope="col">Family</th>${shown.map(([change, title, what]) => html`<th scope="col" class="right" key=${change} title=${what}>${title}</th>`)}</tr></thead>
    <tbody>${rows.map(([family]) => html`<tr key=${family} data-test=${`import-${family}`}><td>${family.replace("_", " ")}</td>
      ${shown.map(([change]) => html`<td class="right" key=${change} data-test=${change}>${told[family][change] === 0 ? html`<span class="muted">0</span>` : number(told[family][change])}</td>`)}</tr>`)}</tbody></table></div>`;
}

/** The first items with one change, those that are replaced or kept with what differs. */
function Items({ told, change, title, what }) {
  const all = total(told, change);
  if (all === 0) return null;
  const lines = FAMILIES.flatMap(([family, one]) => (told[family]?.items ?? [])
    .filter((item) => item.change === change).map((item) => [one, item]));
  return html`<details class="disclosure" open=${change === "changed" || change === "kept"} data-test=${`import-items-${change}`}>
    <summary>${title} (${number(all)}): ${what}</summary>
    <ul class="plain import-items">${lines.map(([one, item], index) => html`<li key=${index}>${one} <b>${nameOf(item)}</b>${item.vhost !== undefined && html` <span class="muted">in ${item.vhost}</span>`}${item.reason !== undefined && html`<span class="muted">: ${item.reason}</span>`}
      ${item.differences && html`<ul>${item.differences.map((difference) => html`<li key=${difference.field}><${Differs} difference=${difference} isKept=${change === "kept"} /></li>`)}</ul>`}</li>`)}
      ${all > lines.length && html`<li class="muted">and ${number(all - lines.length)} more</li>`}</ul></details>`;
}

function nameOf(item) {
  if (item.source !== undefined) return `${item.source} \u2192 ${item.destination}${item.routing_key ? `, key ${item.routing_key}` : ""}`;
  if (item.user !== undefined) return [item.user, item.exchange].filter((part) => part !== undefined).join(", exchange ");
  return item.name;
}

/** A field with both values, of which the first stays in force if the item is kept; a password has none to show. */
function Differs({ difference: { field, before, after }, isKept }) {
  if (before === undefined && after === undefined) return html`<code>${field}</code>`;
  const [was, is] = [before, after].map((value) => (value === undefined ? "none" : plain(value)));
  return isKept ? html`<code>${field}</code>: <b>${was}</b>, in the file ${is}`
    : html`<code>${field}</code>: ${was}<span aria-label="becomes"> \u2192 </span><b>${is}</b>`;
}
