// A look at the messages of a queue: pages by cursor, and a search that goes on until a page is full.

import { get, path } from "../api.js";
import { away, useBack } from "../away.js";
import { brokerNow } from "../clock.js";
import { useCallback, useEffect, useRef, useState } from "../html.js";
import { refreshMs } from "../settings.js";
import { useStore } from "../store.js";

/** How many messages a page has. */
export const PAGE_SIZE = 50;
const PAYLOAD_BYTES = 50_000;
/** A request looks at a limited number of messages; a search makes no more than so many of them. */
const REQUESTS_MAX = 40;

const EMPTY = { messages: [], scanned: 0, total: undefined, cursor: null, error: null, isSearching: false, isLoading: true, at: 0 };

/** The query of one request. */
export function queryOf(filter, cursor) {
  const query = new URLSearchParams({ state: filter.state, count: PAGE_SIZE, truncate: PAYLOAD_BYTES });
  for (const name of ["reason", "first_queue", "text", "without_text"]) {
    if (filter[name]) query.set(name, filter[name]);
  }
  for (const header of filter.headers) query.append("header", header);
  for (const header of filter.withoutHeaders) query.append("without_header", header);
  for (const place of filter.json) query.append("json", place);
  if (cursor) query.set("cursor", cursor);
  return query;
}

/** Messages of a queue that pass a filter. While `isHeld`, the page is not asked for again by itself. */
export function useBrowse(vhost, name, filter, isHeld) {
  const every = useStore(refreshMs);
  const [state, setState] = useState(EMPTY);
  // Where pages begin; the last is the one that is shown.
  const [starts, setStarts] = useState([null]);
  const abort = useRef(null);
  const start = starts.at(-1);

  const look = useCallback(async () => {
    abort.current?.abort();
    const own = new AbortController();
    abort.current = own;
    const url = path("queues", vhost, name, "messages");
    let found = [];
    let scanned = 0;
    let cursor = start;
    setState((old) => ({ ...old, isLoading: true, isSearching: filter.isFiltered, error: null }));
    // It is looked at again when the broker is back.
    if (away.get()) return;
    try {
      for (let requests = 0; requests < REQUESTS_MAX; requests += 1) {
        const answer = await get(`${url}?${queryOf(filter, cursor)}`, {}, { signal: own.signal });
        found = [...found, ...answer.messages];
        scanned += answer.scanned ?? answer.messages.length;
        cursor = answer.cursor ?? null;
        const isSearching = cursor !== null && found.length < PAGE_SIZE && requests + 1 < REQUESTS_MAX;
        setState({ messages: found, scanned, total: answer.messages_total, cursor, error: null, isSearching, isLoading: isSearching, at: brokerNow() });
        if (!isSearching) return;
      }
    } catch (error) {
      if (!own.signal.aborted && !error.isAway) setState((old) => ({ ...old, error, isSearching: false, isLoading: false }));
    }
  }, [vhost, name, filter, start]);

  // Another filter begins at the start.
  const first = useRef(true);
  useEffect(() => {
    if (first.current) first.current = false;
    else setStarts([null]);
    setState(EMPTY);
  }, [filter]);
  useEffect(() => {
    look();
    return () => abort.current?.abort();
  }, [look]);
  useBack(() => {
    if (!isHeld || state.isLoading) look();
  });
  const isStill = isHeld || every === 0 || state.isLoading || filter.isFiltered;
  useEffect(() => {
    if (isStill) return undefined;
    const timer = setTimeout(() => !document.hidden && look(), every);
    return () => clearTimeout(timer);
  }, [isStill, look, state.at, every]);

  return {
    ...state,
    page: starts.length - 1,
    hasMore: state.cursor !== null,
    refresh: look,
    next: () => setStarts((old) => [...old, state.cursor]),
    previous: () => setStarts((old) => (old.length > 1 ? old.slice(0, -1) : old)),
    stop: () => {
      abort.current?.abort();
      setState((old) => ({ ...old, isSearching: false, isLoading: false }));
    },
  };
}
