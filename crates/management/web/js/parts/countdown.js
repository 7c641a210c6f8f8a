// Texts that change between two answers of the broker: ages and countdowns, by the clock of the broker.

import { away } from "../away.js";
import { brokerNow } from "../clock.js";
import { duration } from "../format.js";
import { html, useEffect, useRef } from "../html.js";
import { refreshMs } from "../settings.js";
import { store, useStore } from "../store.js";

/** Changes every second, so that the texts are drawn again. */
const second = store(0);
let watchers = 0;
let timer = 0;

/**
 * The time of the broker, anew every second: one clock for all of the page. `at` is the time of the answer from
 * which something is computed; the clock is never behind it. The clock stands still while the broker does not
 * answer, while the answer is stale, and when the page does not refresh itself.
 */
export function useNow({ at = 0, isStale = false } = {}) {
  useEffect(() => {
    watchers += 1;
    if (watchers === 1) timer = setInterval(() => second.set(brokerNow()), 1000);
    return () => {
      watchers -= 1;
      if (watchers === 0) clearInterval(timer);
    };
  }, []);
  useStore(second);
  const time = brokerNow();
  const isAnswering = useStore(away) === null;
  const isRefreshed = useStore(refreshMs) > 0;
  const isRunning = isAnswering && isRefreshed && !isStale;
  const shown = useRef(0);
  shown.current = isRunning || shown.current === 0 ? Math.max(time, at) : Math.max(shown.current, at);
  return shown.current;
}

/** A duration that has no tenths, because it changes every second. */
export const steady = (ms) => duration(ms < 1000 ? 0 : Math.floor(ms / 1000) * 1000).replace(/^0 ms$/, "0 s");

/** How long until a moment: "12 s". `over` is said when it is past. */
export function Countdown({ to, over = "now", at, isStale }) {
  const left = to - useNow({ at, isStale });
  return html`<span class="countdown">${left <= 0 ? over : steady(left)}</span>`;
}

/** How long since a moment: "3 min 20 s". Later than `until`, nothing is known about it. */
export function Age({ since, at, isStale, until = Infinity }) {
  const time = Math.min(useNow({ at, isStale }), until);
  return html`<span class="countdown">${steady(Math.max(0, time - since))}</span>`;
}
