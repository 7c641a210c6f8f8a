// Lists: columns that can be chosen, a filter, an order, pages. `PagedTable` lets the server do all of
// it, for what may be long; `ListTable` does it here, for lists that are always whole.

import { withQuery } from "./api.js";
import { Waiting } from "./components.js";
import { classes, html, useEffect, useMemo, useState } from "./html.js";
import { useColumns } from "./list/chooser.js";
import { isOnRow, tellWhole, useScrollbar } from "./list/scrolling.js";
import { Filter, Pager } from "./list/toolbar.js";
import { useView } from "./list/view.js";
import { ListHelp } from "./parts/help.js";
import { isLost } from "./parts/lost.js";
import { usePolled } from "./poll.js";

/** A filter that is there for long lists only (`hasFilter="many"`) comes with so many rows. */
const MANY = 10;

/*
 * A column: {
 *   key: "messages",              its name, also in the storage
 *   title: "Total",               its header
 *   render: (row) => ...,         a cell
 *   sort: "messages",             the server's field to order by (ListTable: or a function of a row)
 *   align: "right",               for numbers
 *   width: "6rem",                at least so wide, and as wide as its content; columns without share the rest
 *   max: "12rem",                 at most so wide
 *   group: "Messages",            its group in the menu of columns
 *   isOptional: true,             hidden until the user chooses it
 *   phone: 1,                     its place after the name on a phone; others come later
 *   hint: "...",                  the header's title
 *   isPinned: true,               stays at the right edge where the table is wider than its box: for buttons
 *   legend: [["D", "durable"]],   badges in its cells, for the help of the list
 * }
 */

/** The classes of the cells of a column. */
const classesOf = (column) => classes(column.align, !column.width && "is-flexible", column.isPinned && "is-pinned");

const ARROWS = { up: "\u2191", down: "\u2193" };

function Head({ column, sort, onSort }) {
  const isSorted = sort.key !== undefined && sort.key === column.key;
  const direction = isSorted ? (sort.isReverse ? "descending" : "ascending") : undefined;
  const hint = column.hint ?? column.name;
  return html`<th scope="col" class=${classesOf(column)} style=${{ minWidth: column.width }}
    aria-sort=${direction} title=${hint} data-hint=${hint ? "1" : undefined}>
    ${column.sort && onSort
      ? html`<button type="button" onClick=${() => onSort(column)}>${column.title}<span class="arrow" aria-hidden="true">${isSorted ? (sort.isReverse ? ARROWS.down : ARROWS.up) : ""}</span></button>`
      : column.title}</th>`;
}

/**
 * A table as it is: no filter, no pages. `sort` is `{ key, isReverse }`, `onSort` gets a column. Columns are as wide as
 * their content; a click on a row shows texts in full that are cut off.
 */
export function Table({ columns, rows, rowKey, sort = {}, onSort, label, empty = "No entries.", isLoading = false, test }) {
  const { box, bar, width, onBox, onBar } = useScrollbar();
  const [open, setOpen] = useState(() => new Set());
  const toggle = (key) => setOpen((old) => {
    const next = new Set(old);
    if (!next.delete(key)) next.add(key);
    return next;
  });
  return html`<div class="table-frame">
    <div class=${classes("table-box", width > 0 && "has-bar")} tabindex="0" role="region" aria-label=${label} ref=${box} onScroll=${onBox}>
      <table data-test=${test} aria-busy=${isLoading} onMouseOver=${tellWhole}>
        <thead><tr>${columns.map((column) => html`<${Head} key=${column.key} column=${column} sort=${sort} onSort=${onSort} />`)}</tr></thead>
        <tbody>${rows.map((row, index) => {
          const key = rowKey ? rowKey(row) : index;
          return html`<tr key=${key} class=${open.has(key) ? "is-open" : ""} onClick=${(event) => isOnRow(event) && toggle(key)}>
            ${columns.map((column, at) => html`<td key=${column.key} class=${classesOf(column)} style=${column.max && { maxWidth: column.max }}>${at === 0 ? html`<div class="whole">${column.render(row)}</div>` : column.render(row)}</td>`)}</tr>`;
        })}
          ${rows.length === 0 && html`<tr key="empty" class="none"><td colspan=${columns.length}>${isLoading ? html`<${Waiting} />` : empty}</td></tr>`}
        </tbody>
      </table></div>
    <div class="scrollbar" ref=${bar} onScroll=${onBar} hidden=${width === 0} aria-hidden="true"><div style=${{ width: `${width}px` }}></div></div>
  </div>`;
}

/** True if a filter is wanted: always, or where the list is long or filtered already. */
const isWanted = (hasFilter, view, total) => (hasFilter === "many" ? view.name !== "" || (total ?? 0) > MANY : hasFilter);

/**
 * A list that the server filters, orders and cuts into pages.
 *
 * `url` is the resource, `query` further parameters; `toolbar` is drawn beside the filter. `again` is a ref
 * that gets a function to ask for the list at once, after something was changed; `itemsOf` takes the rows out of an answer.
 */
export function PagedTable({
  id, url, query, columns, rowKey, noun = "row", defaultSort, toolbar, empty, intervalMs, isInAddress = true, again, hasFilter = true,
  filterLabel, itemsOf = (list) => list.items,
}) {
  const [shown, menu] = useColumns(id, columns);
  const { view, change, onSort } = useView(id, isInAddress, defaultSort);
  const sorted = columns.find((column) => column.key === view.sort.key);
  const polled = usePolled(url && withQuery(url, {
    ...query,
    page: view.page,
    page_size: view.size,
    name: view.name,
    use_regex: view.isRegex,
    sort: sorted?.sort,
    sort_reverse: view.sort.isReverse,
  }), intervalMs);
  if (again) again.current = polled.refresh;
  const list = polled.data;
  // The rows of this page are gone: the first page comes instead.
  useEffect(() => {
    if (view.page > 1 && polled.error?.status === 400) change({ page: 1 });
  }, [polled.error]);
  const isRefused = isLost(polled);
  const rows = list && !isRefused ? itemsOf(list) : [];
  const why = polled.error && (isRefused || !list) ? polled.error.message : view.name ? "No match for the filter." : empty;
  return html`<section class=${classes("list", polled.isStale && "is-stale")}>
    <div class="toolbar">
      ${isWanted(hasFilter, view, list?.total_count) && html`<${Filter} value=${view.name} isRegex=${view.isRegex} onChange=${change} label=${filterLabel} />`}
      ${toolbar}<span class="gap"></span>
      ${!isRefused && (list || !polled.error) && html`<${Pager} page=${list?.page} pages=${list?.page_count} shown=${list?.filtered_count} total=${list?.total_count} size=${view.size} noun=${noun} onChange=${change} />`}
      ${menu}<${ListHelp} columns=${columns} />
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

/** A test of texts; as at the server, an invalid pattern matches nothing. */
function matcher({ name, isRegex }) {
  const needle = name.toLowerCase();
  if (!isRegex || needle === "") return (text) => text.toLowerCase().includes(needle);
  try {
    const pattern = new RegExp(name, "i");
    return (text) => pattern.test(text);
  } catch {
    return () => false;
  }
}

/**
 * A list that is there as a whole, as `rows`; undefined while it is not there yet. `polled` is where they are from:
 * if that is refused, the list says why. `filterBy` gives the text of a row
 * that the filter looks into. Without `hasFilter` and with few rows there is no toolbar.
 */
export function ListTable({ id, polled, rows: given = polled?.data, columns, rowKey, noun = "row", defaultSort, toolbar, empty, filterBy = nameOf, hasFilter = false, isInAddress = false }) {
  const [shown, menu] = useColumns(id, columns);
  const isRefused = isLost(polled);
  const rows = isRefused ? undefined : given;
  const { view, change, onSort } = useView(id, isInAddress, defaultSort);
  const column = columns.find((one) => one.key === view.sort.key);
  const by = column?.sort && (typeof column.sort === "function" ? column.sort : (row) => row[column.sort]);
  const matching = useMemo(() => {
    const matches = matcher(view);
    const found = (rows ?? []).filter((row) => matches(filterBy(row)));
    if (!by) return found;
    const sign = view.sort.isReverse ? -1 : 1;
    return [...found].sort((a, b) => sign * compare(by(a), by(b)));
  }, [rows, view.name, view.isRegex, view.sort.key, view.sort.isReverse]);
  const { size } = view;
  const pages = Math.max(1, Math.ceil(matching.length / size));
  const page = Math.min(view.page, pages);
  const hasMenu = columns.some((one) => one.isOptional);
  const hasBox = isWanted(hasFilter, view, rows?.length);
  const hasToolbar = hasBox || toolbar || pages > 1 || hasMenu;
  return html`<section class=${classes("list", polled?.isStale && !isRefused && "is-stale")}>
    ${hasToolbar && html`<div class="toolbar">
      ${hasBox && html`<${Filter} value=${view.name} isRegex=${view.isRegex} onChange=${change} label="Filter" />`}
      ${toolbar}<span class="gap"></span>
      ${!isRefused && html`<${Pager} page=${page} pages=${pages} shown=${matching.length} total=${rows?.length} size=${size} noun=${noun} onChange=${change} />`}
      ${hasMenu && menu}<${ListHelp} columns=${columns} />
    </div>`}
    <${Table} columns=${shown} rows=${matching.slice((page - 1) * size, page * size)} rowKey=${rowKey} sort=${view.sort} onSort=${onSort} label=${noun}
      empty=${isRefused ? polled.error.message : view.name ? "No match for the filter." : empty} isLoading=${rows === undefined && !isRefused} test=${id} />
  </section>`;
}
