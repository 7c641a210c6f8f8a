// Resources that are asked for again and again.

import { get } from "./api.js";
import { away } from "./away.js";
import { brokerNow } from "./clock.js";
import { forgetPart, hearPart } from "./cluster.js";
import { problems } from "./errors.js";
import { useEffect, useRef, useState } from "./html.js";
import { refreshMs } from "./settings.js";
import { useStore } from "./store.js";

/** Longest time between a failure and the next attempt. */
const RETRY_MS = 5000;

/** The page tells of a refusal where the data would be; everything else that fails is in the bar. */
const isRefusal = (error) => error.status >= 400 && error.status < 500;

/**
 * What is at `url` (with its query), asked for every `intervalMs` (by default what the user has chosen).
 *
 * Gives `{ data, error, isStale, isAway, isLoading, at, refresh }`. Data stay until newer data are there, also
 * when the url changes; a component for another thing has another key. Requests never overlap, none is sent
 * while the tab is hidden, and a failure leaves old data, with `isStale`. While the broker is away (`isAway`)
 * nothing is asked for, and data are stale; they are asked for at once when it is back. No url, no requests.
 */
export function usePolled(url, intervalMs) {
  const chosen = useStore(refreshMs);
  const isAway = useStore(away) !== null;
  const every = intervalMs ?? chosen;
  const [state, setState] = useState({ data: undefined, error: null, url: null, at: 0 });
  const again = useRef(() => {});
  useEffect(() => {
    if (!url) return undefined;
    const abort = new AbortController();
    let timer = 0;
    let isAsking = false;
    let isAskedAgain = false;
    let hasFailed = false;
    // Old or incomplete: another answer is wanted soon, as after a failure.
    let isPartial = false;
    // Not answered yet, or not since the broker was away.
    let isWanting = true;
    const plan = () => {
      clearTimeout(timer);
      if (every <= 0 || document.hidden || away.get() || abort.signal.aborted) return;
      timer = setTimeout(ask, hasFailed || isPartial ? Math.min(every, RETRY_MS) : every);
    };
    const onPart = (part) => {
      if (!abort.signal.aborted) isPartial = hearPart(url, part);
    };
    const ask = async () => {
      if (isAsking) {
        isAskedAgain = true;
        return;
      }
      clearTimeout(timer);
      if (away.get()) {
        isWanting = true;
        return;
      }
      isAsking = true;
      try {
        const data = await get(url, {}, { signal: abort.signal, onPart });
        hasFailed = false;
        isWanting = false;
        problems.solved(url);
        setState({ data, error: null, url, at: brokerNow() });
      } catch (error) {
        if (abort.signal.aborted) return;
        if (error.isAway) {
          isWanting = true;
          return;
        }
        hasFailed = true;
        isWanting = false;
        if (isRefusal(error)) problems.solved(url);
        else problems.met(url, error);
        setState((old) => ({ ...old, error, url }));
      } finally {
        isAsking = false;
        if (isAskedAgain && !abort.signal.aborted) {
          isAskedAgain = false;
          ask();
        } else {
          plan();
        }
      }
    };
    const seen = () => (document.hidden ? clearTimeout(timer) : every > 0 && ask());
    const changed = () => (away.get() ? clearTimeout(timer) : (every > 0 || isWanting) && ask());
    document.addEventListener("visibilitychange", seen);
    const forget = away.subscribe(changed);
    again.current = ask;
    ask();
    return () => {
      abort.abort();
      clearTimeout(timer);
      problems.solved(url);
      forgetPart(url);
      forget();
      document.removeEventListener("visibilitychange", seen);
    };
  }, [url, every]);
  return {
    data: state.data,
    error: state.url === url ? state.error : null,
    isStale: state.data !== undefined && (state.error !== null || isAway),
    isAway,
    isLoading: Boolean(url) && state.url !== url,
    at: state.at,
    refresh: () => again.current(),
  };
}
