// What of a list is looked at: filter, order, page and size of a page. They are in the address, or for a list that is not
// alone on its page in the component. Order and size are kept in the browser for the next visit.

import { useState } from "../html.js";
import { place, setQuery } from "../router.js";
import { recall, remember, useStore } from "../store.js";

/** Sizes of a page to choose from; the last is the maximum of the API. */
export const PAGE_SIZES = [25, 50, 100, 250, 500];
const PAGE_SIZE = 100;

/** The size that an address or the browser has, if it is one of the sizes. */
const sizeOf = (...values) => values.map(Number).find((size) => PAGE_SIZES.includes(size)) ?? PAGE_SIZE;

/** The view of a list, `change` for parts of it, and `onSort` for a click on a column's header. */
export function useView(id, isInAddress, defaultSort) {
  const { query } = useStore(place);
  const key = `leveret.list.${id}`;
  const [kept, setKept] = useState(() => recall(key, {}));
  const [own, setOwn] = useState({});
  const of = (name) => (isInAddress ? query.get(name) : own[name]) ?? "";
  const order = of("sort") ? { key: of("sort"), isReverse: of("reverse") === "1" || of("reverse") === 1 } : kept.sort ?? defaultSort ?? {};
  const view = {
    name: of("name"),
    isRegex: of("regex") === "1" || of("regex") === 1,
    page: Math.max(1, Math.floor(Number(of("page"))) || 1),
    size: sizeOf(of("size"), kept.size),
    sort: { key: order.key, isReverse: Boolean(order.isReverse) },
  };
  const keep = (changes) => {
    const next = { ...kept, ...changes };
    setKept(next);
    remember(key, next);
  };
  const change = ({ name, isRegex, page, size, sort }) => {
    const changes = { page: page > 1 ? page : null };
    if (name !== undefined) changes.name = name;
    if (isRegex !== undefined) changes.regex = isRegex ? 1 : null;
    if (size !== undefined) {
      changes.size = size;
      keep({ size });
    }
    if (sort) {
      Object.assign(changes, { sort: sort.key, reverse: sort.isReverse ? 1 : null });
      keep({ sort });
    }
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
