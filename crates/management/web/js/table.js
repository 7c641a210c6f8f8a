// Lists: columns that can be chosen, a filter, an order, pages. `PagedTable` lets the server do all of
// it, for what may be long; `ListTable` does it here, for lists that are always whole.

import { withQuery } from "./api.js";
import { count, number } from "./format.js";
import { classes, html, useEffect, useMemo, useRef, useState } from "./html.js";
import { usePolled } from "./poll.js";
import { place, setQuery } from "./router.js";
import { recall, remember, useStore } from "./store.js";

const PAGE_SIZE = 100;
const FILTER_MS = 250;

/*
 * A column: {
 *   key: "messages",              its name, also in the storage
 *   title: "Total",               its header
 *   render: (row) => ...,         a cell
 *   sort: "messages",             the server's field to order by (ListTable: or a function of a row)
 *   align: "right",               for numbers
 *   width: "6rem",                of all cells; a column without takes what is left
 *   isOptional: true,             hidden until the user chooses it
 *   hint: "...",                  the header's title
 * }
 */

/** The columns that are shown, and the button with which they are chosen. */
function useColumns(id, columns) {
  const key = `leveret.columns.${id}`;
  const [chosen, setChosen] = useState(() => recall(key, {}));
  const isShown = (column) => chosen[column.key] ?? !column.isOptional;
  const choose = (column, value) => {
    const next = { ...chosen, [column.key]: value };
    setChosen(next);
    remember(key, next);
  };
  const menu = html`<details class="menu" data-test="columns"><summary>Columns</summary><div class="menu-box">
    ${columns.map((column) => html`<label class="check" key=${column.key}>
      <input type="checkbox" checked=${isShown(column)} onInput=${(event) => choose(column, event.target.checked)} />
      <span>${column.name ?? column.title}</span></label>`)}</div></details>`;
  return [columns.filter(isShown), menu];
}

const ARROWS = { up: "\u2191", down: "\u2193" };

/** A table as it is: no filter, no pages. `sort` is `{ key, isReverse }`, `onSort` gets a column. */
export function Table({ columns, rows, rowKey, sort = {}, onSort, label, empty = "No entries.", isLoading = false, test }) {
  const rest = columns.filter((column) => !column.width).length;
  const width = columns.map((column) => column.width ?? "11rem").join(" + ");
  return html`<div class="table-box" tabindex="0" role="region" aria-label=${label}>
    <table style=${{ minWidth: `calc(${width})` }} data-test=${test} aria-busy=${isLoading}>
      <colgroup>${columns.map((column) => html`<col key=${column.key} style=${{ width: column.width ?? (rest > 0 ? "auto" : null) }} />`)}</colgroup>
      <thead><tr>${columns.map((column) => {
        const isSorted = sort.key !== undefined && sort.key === column.key;
        const direction = isSorted ? (sort.isReverse ? "descending" : "ascending") : undefined;
        return html`<th key=${column.key} scope="col" class=${column.align ?? ""} aria-sort=${direction} title=${column.hint ?? column.name}>
          ${column.sort && onSort
            ? html`<button type="button" onClick=${() => onSort(column)}>${column.title}<span class="arrow" aria-hidden="true">${isSorted ? (sort.isReverse ? ARROWS.down : ARROWS.up) : ""}</span></button>`
            : column.title}</th>`;
      })}</tr></thead>
      <tbody>${rows.map((row, index) => html`<tr key=${rowKey ? rowKey(row) : index}>
        ${columns.map((column) => html`<td key=${column.key} class=${column.align ?? ""}>${column.render(row)}</td>`)}</tr>`)}
        ${rows.length === 0 && html`<tr key="empty" class="none"><td colspan=${columns.length}>${isLoading ? "Loading\u2026" : empty}</td></tr>`}
      </tbody>
    </table></div>`;
}

/** The text field of a filter; the text applies a moment after the last key. */
function Filter({ value, isRegex, onChange, label }) {
  const [text, setText] = useState(value);
  const timer = useRef(0);
  useEffect(() => setText(value), [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const type = (next) => {
    setText(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => onChange({ name: next }), FILTER_MS);
  };
  return html`<div class="filter" role="search">
    <input type="search" data-filter data-test="filter" value=${text} placeholder="Filter by name" aria-label=${label} spellcheck=${false} autocomplete="off"
      onInput=${(event) => type(event.target.value)} />
    ${isRegex !== undefined && html`<label class="check" title="Use the text as a regular expression"><input type="checkbox" checked=${isRegex} data-test="regex"
      onInput=${(event) => onChange({ isRegex: event.target.checked })} /><span>Regex</span></label>`}
  </div>`;
}

/** Back, forth, and where one is. */
function Pager({ page, pages, shown, total, noun, onPage }) {
  const text = shown === total ? count(total, noun) : `${number(shown)} of ${count(total, noun)}`;
  return html`<nav class="pager" aria-label="Pages">
    <span class="muted" data-test="count">${text}</span>
    ${pages > 1 && html`<button type="button" disabled=${page <= 1} onClick=${() => onPage(page - 1)} data-test="previous">Previous</button>
      <span>Page ${number(page)} of ${number(pages)}</span>
      <button type="button" disabled=${page >= pages} onClick=${() => onPage(page + 1)} data-test="next">Next</button>`}
  </nav>`;
}

/** Filter, order and page of a list: in the address, or for a list that is not alone on its page here. */
function useView(isInAddress, defaultSort) {
  const { query } = useStore(place);
  const [own, setOwn] = useState({});
  const of = (name) => (isInAddress ? query.get(name) : own[name]) ?? "";
  const sort = of("sort") || defaultSort?.key;
  const view = {
    name: of("name"),
    isRegex: of("regex") === "1",
    page: Math.max(1, Number(of("page")) || 1),
    sort: { key: sort, isReverse: of("sort") ? of("reverse") === "1" : Boolean(defaultSort?.isReverse) },
  };
  const change = ({ name, isRegex, page, sort: order }) => {
    const changes = { page: page > 1 ? page : null };
    if (name !== undefined) changes.name = name;
    if (isRegex !== undefined) changes.regex = isRegex ? 1 : null;
    if (order) Object.assign(changes, { sort: order.key, reverse: order.isReverse ? 1 : null });
    if (isInAddress) setQuery(changes);
    else setOwn((old) => ({ ...old, ...changes }));
  };
  const onSort = (column) => {
    const isSame = view.sort.key === column.key;
    // Numbers are most interesting where they are large.
    change({ sort: { key: column.key, isReverse: isSame ? !view.sort.isReverse : column.align === "right" } });
  };
  return { view, change, onSort };
}

/**
 * A list that the server filters, orders and cuts into pages.
 *
 * `url` is the resource, `query` further parameters; `toolbar` is drawn beside the filter. `again` is a ref
 * that gets a function to ask for the list at once, after something was changed.
 */
export function PagedTable({ id, url, query, columns, rowKey, noun = "row", defaultSort, toolbar, empty, intervalMs, isInAddress = true, again, hasFilter = true }) {
  const [shown, menu] = useColumns(id, columns);
  const { view, change, onSort } = useView(isInAddress, defaultSort);
  const sorted = columns.find((column) => column.key === view.sort.key);
  const polled = usePolled(url && withQuery(url, {
    ...query,
    page: view.page,
    page_size: PAGE_SIZE,
    name: view.name,
    use_regex: view.isRegex,
    sort: sorted?.sort,
    sort_reverse: view.sort.isReverse,
  }), intervalMs);
  if (again) again.current = polled.refresh;
  const list = polled.data;
  // What was on this page is gone: the last one that there is comes instead.
  useEffect(() => {
    if (view.page > 1 && polled.error?.status === 400) change({ page: 1 });
  }, [polled.error]);
  const rows = list?.items ?? [];
  const why = polled.error && !list ? polled.error.message : view.name ? "No match for the filter." : empty;
  return html`<section class=${classes("list", polled.isStale && "is-stale")}>
    <div class="toolbar">
      ${hasFilter && html`<${Filter} value=${view.name} isRegex=${view.isRegex} onChange=${change} label="Filter by name" />`}
      ${toolbar}<span class="gap"></span>
      <${Pager} page=${list?.page ?? 1} pages=${list?.page_count ?? 1} shown=${list?.filtered_count ?? rows.length} total=${list?.total_count ?? rows.length} noun=${noun} onPage=${(page) => change({ page })} />
      ${menu}
    </div>
    <${Table} columns=${shown} rows=${rows} rowKey=${rowKey} sort=${view.sort} onSort=${onSort} label=${noun} empty=${why} isLoading=${!list && !polled.error} test=${id} />
  </section>`;
}

const nameOf = (row) => row.name ?? "";
const collator = new Intl.Collator("en", { numeric: true });

function compare(a, b) {
  const isNone = (value) => value === undefined || value === null;
  if (isNone(a) || isNone(b)) return isNone(a) ? (isNone(b) ? 0 : -1) : 1;
  return typeof a === "number" && typeof b === "number" ? a - b : collator.compare(String(a), String(b));
}

/**
 * A list that is there as a whole, as `rows`; undefined while it is not there yet. `filterBy` gives the text of a row
 * that the filter looks into. Without `hasFilter` and with few rows there is no toolbar.
 */
export function ListTable({ id, rows, columns, rowKey, noun = "row", defaultSort, toolbar, empty, filterBy = nameOf, hasFilter = false, isInAddress = false }) {
  const [shown, menu] = useColumns(id, columns);
  const { view, change, onSort } = useView(isInAddress, defaultSort);
  const column = columns.find((one) => one.key === view.sort.key);
  const by = column?.sort && (typeof column.sort === "function" ? column.sort : (row) => row[column.sort]);
  const needle = view.name.toLowerCase();
  const matching = useMemo(() => {
    const found = (rows ?? []).filter((row) => needle === "" || filterBy(row).toLowerCase().includes(needle));
    if (!by) return found;
    const sign = view.sort.isReverse ? -1 : 1;
    return [...found].sort((a, b) => sign * compare(by(a), by(b)));
  }, [rows, needle, view.sort.key, view.sort.isReverse]);
  const pages = Math.max(1, Math.ceil(matching.length / PAGE_SIZE));
  const page = Math.min(view.page, pages);
  const hasMenu = columns.some((one) => one.isOptional);
  const hasToolbar = hasFilter || toolbar || pages > 1 || hasMenu;
  return html`<section class="list">
    ${hasToolbar && html`<div class="toolbar">
      ${hasFilter && html`<${Filter} value=${view.name} onChange=${change} label="Filter" />`}
      ${toolbar}<span class="gap"></span>
      <${Pager} page=${page} pages=${pages} shown=${matching.length} total=${rows?.length ?? 0} noun=${noun} onPage=${(to) => change({ page: to })} />
      ${hasMenu && menu}
    </div>`}
    <${Table} columns=${shown} rows=${matching.slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE)} rowKey=${rowKey} sort=${view.sort} onSort=${onSort} label=${noun}
      empty=${needle ? "No match for the filter." : empty} isLoading=${rows === undefined} test=${id} />
  </section>`;
}
