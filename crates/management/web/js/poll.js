// Resources that are asked for again and again.

import { get } from "./api.js";
import { problems } from "./errors.js";
import { useEffect, useRef, useState } from "./html.js";
import { refreshMs } from "./settings.js";
import { useStore } from "./store.js";

/** Longest time between a failure and the next attempt. */
const RETRY_MS = 5000;

/**
 * What is at `url` (with its query), asked for every `intervalMs` (by default what the user has chosen).
 *
 * Gives `{ data, error, isStale, isLoading, at, refresh }`. Data stay until newer data are there, also
 * when the url changes; a component for another thing has another key. Requests never overlap, none is sent
 * while the tab is hidden, and a failure leaves old data, with `isStale`. No url, no requests.
 */
export function usePolled(url, intervalMs) {
  const chosen = useStore(refreshMs);
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
    const plan = () => {
      clearTimeout(timer);
      if (every <= 0 || document.hidden || abort.signal.aborted) return;
      timer = setTimeout(ask, hasFailed ? Math.min(every, RETRY_MS) : every);
    };
    const ask = async () => {
      if (isAsking) {
        isAskedAgain = true;
        return;
      }
      clearTimeout(timer);
      isAsking = true;
      try {
        const data = await get(url, {}, { signal: abort.signal });
        hasFailed = false;
        problems.solved(url);
        setState({ data, error: null, url, at: Date.now() });
      } catch (error) {
        if (abort.signal.aborted) return;
        hasFailed = true;
        // What is not there is for the page to tell.
        if (error.status !== 404) problems.met(url, error);
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
    document.addEventListener("visibilitychange", seen);
    again.current = ask;
    ask();
    return () => {
      abort.abort();
      clearTimeout(timer);
      problems.solved(url);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [url, every]);
  return {
    data: state.data,
    error: state.url === url ? state.error : null,
    isStale: state.error !== null && state.data !== undefined,
    isLoading: Boolean(url) && state.url !== url,
    at: state.at,
    refresh: () => again.current(),
  };
}
