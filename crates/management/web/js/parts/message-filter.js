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

/** The filter that an address has: `{ state, reason, first_queue, headers, text, isFiltered }`. */
export function filterOf(query) {
  const of = (name) => query.get(name) ?? "";
  const state = STATES.some(([key]) => key === of("state")) ? of("state") : "ready";
  const headers = of("header").split("\n").filter((header) => header.trim() !== "");
  const filter = { state, reason: of("reason"), first_queue: of("first_queue"), text: of("text"), headers };
  return { ...filter, isFiltered: Boolean(filter.reason || filter.first_queue || filter.text || headers.length > 0) };
}

/** The form; it applies when it is sent, a choice of a list at once. */
export function Filters({ filter }) {
  const values = { reason: filter.reason, first_queue: filter.first_queue, text: filter.text, header: filter.headers[0] ?? "" };
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
    <${SelectField} label="Died because" ...${form.bind("reason")} onInput=${choose} options=${[["", "any reason"], ...Object.entries(REASONS)]} />
    <${TextField} label="Died first in queue" ...${form.bind("first_queue")} />
    <${TextField} label="Header" placeholder="name or name=value" ...${form.bind("header")} />
    <${TextField} label="Text in the body" ...${form.bind("text")} data-filter />
    <div class="actions"><button type="submit" data-test="apply">Search</button>
      ${filter.isFiltered && html`<button type="button" class="quiet" data-test="clear"
        onClick=${() => setQuery({ reason: null, first_queue: null, header: null, text: null })}>Clear</button>`}</div>
  </form></details>`;
}
