// The definition of a policy as it is typed: one row for each key, with the input that fits it.

import { path, withQuery } from "../api.js";
import { html, useRef } from "../html.js";
import { usePolled } from "../poll.js";
import { GROUPS, inWords, settingOf, WITHOUT_EFFECT } from "./policy-keys.js";
import { useSettled } from "./settled.js";

const SUGGESTED_MAX = 100;
const SUGGESTED_MS = 60_000;

/** The rows for a definition. */
export const rowsOfDefinition = (definition = {}) => Object.entries(definition)
  .map(([key, value]) => ({ key, text: typeof value === "string" && settingOf(key) ? value : JSON.stringify(value) }));

/** The definition that rows stand for. Throws an error that names the key; values are for the server to judge. */
export function definitionOf(rows) {
  return Object.fromEntries(rows.map(({ key, text }) => {
    const setting = settingOf(key);
    if (!setting) return [key, parsed(key, text)];
    if (setting.type !== "number") return [key, text];
    if (text.trim() === "") throw new Error(`${key} has no value`);
    return [key, Number.isNaN(Number(text)) ? text : Number(text)];
  }));
}

function parsed(key, text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${key}: ${text || "an empty value"} is not valid JSON (texts need quotes)`);
  }
}

function Suggestions({ id, vhost, of, typed }) {
  const name = useSettled(typed);
  const { data } = usePolled(withQuery(path(of, vhost), { page: 1, page_size: SUGGESTED_MAX, name, columns: "name", disable_stats: true }), SUGGESTED_MS);
  return html`<datalist id=${id}>${(data?.items ?? []).filter(({ name }) => name).map(({ name }) => html`<option key=${name} value=${name}></option>`)}</datalist>`;
}

function Input({ row, vhost, onText }) {
  const setting = settingOf(row.key);
  const shared = { "aria-label": row.key, "data-test": `value-${row.key}`, onInput: (event) => onText(event.target.value) };
  if (setting?.type === "choice") {
    const all = setting.choices.includes(row.text) ? setting.choices : [row.text, ...setting.choices];
    return html`<select ...${shared} value=${row.text}>${all.map((one) => html`<option key=${one} value=${one} selected=${one === row.text}>${one}</option>`)}</select>`;
  }
  const id = `suggested-${row.key}`;
  return html`<input type="text" ...${shared} value=${row.text} inputmode=${setting?.type === "number" ? "numeric" : undefined}
      list=${setting?.of ? id : undefined} autocomplete="off" spellcheck=${false} placeholder=${setting ? "" : "JSON"} />
    ${setting?.of && html`<${Suggestions} id=${id} vhost=${vhost} of=${setting.of} typed=${row.text} />`}`;
}

const number = (text) => (text.trim() === "" ? undefined : Number(text));

/** Edits `rows`; `isOperators` leaves out what operator policies may not have. */
export function DefinitionEditor({ rows, onChange, vhost, isOperators = false }) {
  const box = useRef(null);
  const isThere = (key) => rows.some((row) => row.key === key);
  const focus = (key) => requestAnimationFrame(() => box.current?.querySelector(`[data-test="value-${key}"]`)?.focus());
  const add = ({ key, choices }) => {
    if (!isThere(key)) onChange([...rows, { key, text: choices ? choices[0] : "" }]);
    focus(key);
  };
  const change = (key, text) => onChange(rows.map((row) => (row.key === key ? { key, text } : row)));
  const buttons = (settings) => settings.filter((setting) => !isOperators || setting.isOperators).map((setting) => html`
    <button type="button" class="hint" key=${setting.key} title=${setting.hint} aria-pressed=${isThere(setting.key)}
      data-test=${`key-${setting.key}`} onClick=${() => add(setting)}>${setting.key}</button>`);
  return html`<fieldset class="definition-editor is-wide" ref=${box} data-test="definition"><legend>Definition</legend>
    ${rows.length === 0 && html`<p class="muted">Choose a key below.</p>`}
    ${rows.map((row) => {
      const setting = settingOf(row.key);
      const words = setting?.unit ? inWords(row.key, number(row.text)) : "";
      return html`<div class="definition-row" key=${row.key}>
        <code>${row.key}</code>
        <span class="with-unit"><${Input} row=${row} vhost=${vhost} onText=${(text) => change(row.key, text)} />
          ${setting?.unit && html`<span class="muted">${setting.unit}${words && words !== `${row.text} ${setting.unit}` ? ` = ${words}` : ""}</span>`}</span>
        <button type="button" class="quiet" aria-label=${`Remove ${row.key}`} onClick=${() => onChange(rows.filter((one) => one !== row))}>\u2715</button>
        ${setting?.hint && html`<small class="muted">${setting.hint}${setting.on === "quorum" ? " Quorum queues only." : ""}</small>`}
      </div>`;
    })}
    <div class="key-groups">${GROUPS.map(([title, settings]) => {
      const shown = buttons(settings);
      return shown.length > 0 && html`<div key=${title}><span>${title}</span><p class="hints">${shown}</p></div>`;
    })}
    <details><summary>Keys without effect</summary><p class="hints">${buttons(WITHOUT_EFFECT)}</p></details></div>
  </fieldset>`;
}
