// The filter of the list of scheduled messages: kept in the address, to be shared as a link.

import { TextField, useForm } from "../../forms.js";
import { html, useLayoutEffect } from "../../html.js";
import { setQuery } from "../../router.js";
import { usePhone } from "../../viewport.js";

const NAMES = ["target", "id", "after", "before"];

/** The filter that an address has: `{ query, isFiltered }`; times in milliseconds since 1970. */
export function filterOf(query) {
  const pairs = NAMES.map((name) => [name, query.get(name) ?? ""]).filter(([, value]) => value !== "");
  return { query: Object.fromEntries(pairs), isFiltered: pairs.length > 0 };
}

/** A time as a field for local times has it. */
export function localTime(ms) {
  const date = new Date(Number(ms));
  if (!ms || Number.isNaN(date.getTime())) return "";
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** The time in such a field, in milliseconds since 1970; nothing for an empty one. */
export const timeOf = (text) => (text === "" ? "" : String(new Date(text).getTime()));

/** The form; it applies when it is sent. */
export function Filters({ filter }) {
  const { target = "", id = "", after = "", before = "" } = filter.query;
  const values = { target, id, after: localTime(after), before: localTime(before) };
  const form = useForm(values);
  // At once: after the next picture it would overwrite what has been typed meanwhile.
  useLayoutEffect(() => form.set(values), [target, id, after, before]);
  const apply = (event) => {
    event.preventDefault();
    const given = form.values;
    setQuery({ ...given, after: timeOf(given.after), before: timeOf(given.before) });
  };
  const isPhone = usePhone();
  return html`<details class="disclosure filter-fold" open=${!isPhone || filter.isFiltered} data-test="filter-fold"><summary>Filter</summary><form class="browse-filter" onSubmit=${apply} role="search" aria-label="Scheduled messages" data-test="schedule-filter">
    <${TextField} label="Waits in" placeholder="queue/NAME or exchange/NAME" ...${form.bind("target")} data-filter />
    <${TextField} label="Schedule id" ...${form.bind("id")} />
    <${TextField} label="Delivered from" type="datetime-local" step="1" ...${form.bind("after")} />
    <${TextField} label="Delivered before" type="datetime-local" step="1" ...${form.bind("before")} />
    <div class="actions"><button type="submit" data-test="apply">Search</button>
      ${filter.isFiltered && html`<button type="button" class="quiet" data-test="clear"
        onClick=${() => setQuery(Object.fromEntries(NAMES.map((name) => [name, null])))}>Clear</button>`}</div>
  </form></details>`;
}
