// Forms: inputs with labels, a form that shows what the server says, an editor of arguments.

import { note } from "./errors.js";
import { html, useRef, useState } from "./html.js";

/** A label around any input. `hint` is a line below it. */
export const Field = ({ label, hint, children, isWide = false }) => html`
  <label class=${isWide ? "field is-wide" : "field"}><span>${label}</span>${children}
    ${hint && html`<small>${hint}</small>`}</label>`;

const typed = (change) => (event) => change(event.target.value);

/** A line of text. `onInput` gets the text; further properties go to the input. */
export const TextField = ({ label, hint, value, onInput, type = "text", isWide, ...rest }) => html`
  <${Field} label=${label} hint=${hint} isWide=${isWide}>
    <input type=${type} value=${value} onInput=${typed(onInput)} autocomplete="off" spellcheck=${false} ...${rest} /><//>`;

/** A number, as text until it is used; empty for none. */
export const NumberField = (props) => html`<${TextField} type="number" min="0" inputmode="numeric" ...${props} />`;

/** Several lines of text. */
export const AreaField = ({ label, hint, value, onInput, rows = 5, ...rest }) => html`
  <${Field} label=${label} hint=${hint} isWide=${true}>
    <textarea rows=${rows} value=${value} onInput=${typed(onInput)} spellcheck=${false} ...${rest}></textarea><//>`;

/** One of several: `options` are texts or `[value, title]`. */
export const SelectField = ({ label, hint, value, onInput, options, ...rest }) => html`
  <${Field} label=${label} hint=${hint}><select value=${value} onInput=${typed(onInput)} ...${rest}>
    ${options.map((option) => {
      const [key, title] = [option].flat().length > 1 ? option : [option, option];
      return html`<option key=${key} value=${key} label=${title} selected=${String(key) === String(value)}>${title}</option>`;
    })}</select><//>`;

/** Yes or no. */
export const CheckField = ({ label, hint, value, onInput, ...rest }) => html`
  <label class="check"><input type="checkbox" checked=${value} onInput=${(event) => onInput(event.target.checked)} ...${rest} />
    <span>${label}${hint && html` <small>${hint}</small>`}</span></label>`;

/** The values of a form: `form.values`, `form.set({ name })`, and `form.bind("name")` for one field. */
export function useForm(initial) {
  const [values, setValues] = useState(initial);
  const set = (changes) => setValues((old) => ({ ...old, ...changes }));
  const bind = (name) => ({ name, value: values[name], onInput: (value) => set({ [name]: value }) });
  return { values, set, bind, reset: () => setValues(initial) };
}

/** Enter sends a form from lines of text, unless that is not safe; never from a choice, where it opens or picks. */
const keepsEnter = (isDangerous) => (event) => {
  const { tagName, type } = event.target;
  if (event.key === "Enter" && tagName === "INPUT" && (isDangerous || /^(checkbox|radio)$/.test(type))) event.preventDefault();
};

/**
 * A form that does something with the server: while it does, it cannot be sent again; what goes wrong
 * is shown in it. `onSubmit` may be async and throw; `done` is said when it has not, and did not give false. Enter does not send
 * a form that `isDangerous`, or whose button is to be looked at first (`needsLook`). `isReady` enables its button.
 */
export function ActionForm({ onSubmit, action, done, isDangerous = false, needsLook = isDangerous, isReady = true, onCancel, children, test }) {
  const [state, setState] = useState({ isBusy: false, error: null });
  const isGone = useRef(false);
  const submit = async (event) => {
    event.preventDefault();
    if (state.isBusy || !isReady) return;
    setState({ isBusy: true, error: null });
    try {
      const result = await onSubmit();
      if (done && result !== false) note(done);
      if (!isGone.current) setState({ isBusy: false, error: null });
    } catch (error) {
      setState({ isBusy: false, error });
    }
  };
  return html`<form class="action-form" onSubmit=${submit} onKeyDown=${keepsEnter(needsLook)} data-test=${test}>
    <div class="fields">${children}</div>
    ${state.error && html`<p class="form-error" role="alert" data-test="form-error">${state.error.message}</p>`}
    <div class="actions">
      ${onCancel && html`<button type="button" onClick=${onCancel} data-cancel>Cancel</button>`}
      <button type="submit" class=${isDangerous ? "danger" : "primary"} disabled=${!isReady} aria-disabled=${state.isBusy} data-test="submit">${action}</button>
    </div>
  </form>`;
}

const TYPES = [["string", "String"], ["number", "Number"], ["boolean", "Boolean"], ["list", "List (JSON)"], ["object", "Table (JSON)"]];

/** One row more in what `ArgumentsEditor` edits; the last row is always empty. */
const blank = () => ({ key: "", type: "string", value: "" });

/** What `ArgumentsEditor` starts with, for a table. */
export function rowsOf(table = {}) {
  const rows = Object.entries(table).map(([key, value]) => {
    const type = Array.isArray(value) ? "list" : value === null ? "object" : typeof value;
    return { key, type, value: type === "string" ? value : JSON.stringify(value) };
  });
  return [...rows, blank()];
}

/** The table that rows stand for. Throws an error that says which row is wrong. */
export function tableOf(rows) {
  const table = {};
  for (const { key, type, value } of rows) {
    if (key === "" && value === "") continue;
    if (key === "") throw new Error(`The value ${value} has no name.`);
    table[key] = parsed(key, type, value);
  }
  return table;
}

function parsed(key, type, text) {
  if (type === "string") return text;
  let value;
  try {
    value = JSON.parse(text.trim());
  } catch {
    throw new Error(`${key}: ${text || "an empty value"} is not a ${type}`);
  }
  const is = Array.isArray(value) ? "list" : typeof value;
  if (is !== type) throw new Error(`${key}: ${text} is a ${is}, not a ${type}`);
  return value;
}

/**
 * Names, types and values, one row each. `hints` are `[key, type, title]` of well-known names, which a
 * click enters.
 */
export function ArgumentsEditor({ label = "Arguments", rows, onChange, hints = [], test }) {
  const box = useRef(null);
  const complete = (all) => {
    const last = all.at(-1);
    onChange(!last || last.key !== "" || last.value !== "" ? [...all, blank()] : all);
  };
  const change = (index, part) => complete(rows.map((row, at) => (at === index ? { ...row, ...part } : row)));
  const suggest = (key, type, value = "") => {
    const at = rows.findIndex((row) => row.key === key);
    if (at < 0) complete([...rows.filter((row) => row.key !== "" || row.value !== ""), { key, type, value: String(value) }]);
    const index = at < 0 ? rows.filter((row) => row.key !== "" || row.value !== "").length : at;
    requestAnimationFrame(() => box.current?.querySelectorAll("[data-value]")[index]?.focus());
  };
  return html`<fieldset class="arguments is-wide" ref=${box} data-test=${test}><legend>${label}</legend>
    ${rows.map((row, index) => html`<div class="argument" key=${index}>
      <input type="text" value=${row.key} placeholder="name" aria-label="Name" spellcheck=${false} autocomplete="off" onInput=${typed((key) => change(index, { key }))} />
      <select value=${row.type} aria-label="Type" onInput=${typed((type) => change(index, { type }))}>
        ${TYPES.map(([type, title]) => html`<option key=${type} value=${type} selected=${type === row.type}>${title}</option>`)}</select>
      <input type="text" data-value value=${row.value} placeholder="value" aria-label="Value" spellcheck=${false} autocomplete="off" onInput=${typed((value) => change(index, { value }))} />
      <button type="button" class="quiet" aria-label="Remove this row" disabled=${rows.length === 1}
        onClick=${() => complete(rows.filter((_, at) => at !== index))}>\u2715</button>
    </div>`)}
    ${hints.length > 0 && html`<p class="hints">${hints.map(([key, type, title, value]) => html`
      <button type="button" class="hint" key=${key} title=${key} onClick=${() => suggest(key, type, value)}>${title}</button>`)}</p>`}
  </fieldset>`;
}
