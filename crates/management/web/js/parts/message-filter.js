// The filter of the list of messages: kept in the address, to be shared as a link.

import { html, useLayoutEffect, useRef } from "../html.js";
import { SelectField, TextField, useForm } from "../forms.js";
import { setQuery } from "../router.js";
import { usePhone } from "../viewport.js";
import { REASONS } from "./deaths.js";

/** The states of messages that can be looked at. */
export const STATES = [
  ["ready", "Ready"],
  ["unacknowledged", "Unacknowledged"],
  ["delayed", "Delayed"],
  ["dead", "Dead letters awaiting delivery"],
];

/** The parts of a filter in an address. */
const NAMES = ["reason", "first_queue", "header", "text", "without_header", "without_text", "json"];
const NOTHING = Object.fromEntries(NAMES.map((name) => [name, null]));

/** The filter that an address has: `{ state, reason, first_queue, headers, text, withoutHeaders, without_text, json, isFiltered }`. */
export function filterOf(query) {
  const of = (name) => query.get(name) ?? "";
  const lines = (name) => of(name).split("\n").filter((line) => line.trim() !== "");
  const state = STATES.some(([key]) => key === of("state")) ? of("state") : "ready";
  return {
    state, reason: of("reason"), first_queue: of("first_queue"), headers: lines("header"), text: of("text"), withoutHeaders: lines("without_header"), without_text: of("without_text"), json: lines("json"),
    isFiltered: NAMES.some((name) => of(name).trim() !== ""),
  };
}

/** The values of a filter in the fields of a form. */
export const fieldsOf = ({ reason = "", first_queue = "", headers = [], text = "", withoutHeaders = [], without_text = "", json = [] }) =>
  ({ reason, first_queue, header: headers[0] ?? "", text, without_header: withoutHeaders[0] ?? "", without_text, json: json[0] ?? "" });

/** The fields of a filter. `onReason` is for a choice that applies at once. */
export const FilterFields = ({ form, onReason }) => html`
  <${SelectField} label="Died because" ...${form.bind("reason")} ...${onReason && { onInput: onReason }} options=${[["", "any reason"], ...Object.entries(REASONS)]} />
  <${TextField} label="Died first in queue" ...${form.bind("first_queue")} />
  <${TextField} label="With header" placeholder="name or name=value" ...${form.bind("header")} />
  <${TextField} label="With text" placeholder="in the body" ...${form.bind("text")} data-filter />
  <${TextField} label="Without header" placeholder="name or name=value" ...${form.bind("without_header")} data-test="without-header" />
  <${TextField} label="Without text" placeholder="in the body" ...${form.bind("without_text")} data-test="without-text" />
  <${TextField} label="With value in JSON" placeholder="/customer/id=7" ...${form.bind("json")} data-test="json" />`;

/** The form; it applies when it is sent, a choice of a list at once. */
export function Filters({ filter }) {
  const values = fieldsOf(filter);
  const form = useForm(values);
  const box = useRef(null);
  // At once: after the next picture it would overwrite what has been typed meanwhile.
  useLayoutEffect(() => form.set(values), [filter]);
  const apply = (event) => {
    event?.preventDefault();
    setQuery(form.values);
  };
  const choose = (reason) => {
    form.set({ reason });
    setQuery({ ...form.values, reason });
  };
  const isPhone = usePhone();
  return html`<details class="disclosure filter-fold" open=${!isPhone || filter.isFiltered} data-test="filter-fold"><summary>Filter</summary><form class="browse-filter" onSubmit=${apply} role="search" aria-label="Messages" ref=${box} data-test="message-filter">
    <${FilterFields} form=${form} onReason=${choose} />
    <div class="actions"><button type="submit" data-test="apply">Search</button>
      ${filter.isFiltered && html`<button type="button" class="quiet" data-test="clear"
        onClick=${() => setQuery(NOTHING)}>Clear</button>`}</div>
  </form></details>`;
}
