// Texts that change with the clock, without the server.

import { duration } from "../format.js";
import { html, useEffect, useState } from "../html.js";
import { store, useStore } from "../store.js";

const now = store(Date.now());
let watchers = 0;
let timer = 0;

/** The time, anew every second: one clock for all of the page. */
export function useNow() {
  useEffect(() => {
    watchers += 1;
    if (watchers === 1) timer = setInterval(() => now.set(Date.now()), 1000);
    now.set(Date.now());
    return () => {
      watchers -= 1;
      if (watchers === 0) clearInterval(timer);
    };
  }, []);
  return useStore(now);
}

/** A duration that has no tenths, because it changes every second. */
export const steady = (ms) => duration(ms < 1000 ? 0 : Math.floor(ms / 1000) * 1000).replace(/^0 ms$/, "0 s");

/** How long until a moment: "12 s". `over` is said when it is past. */
export function Countdown({ to, over = "now" }) {
  const left = to - useNow();
  return html`<span class="countdown">${left <= 0 ? over : steady(left)}</span>`;
}

/** How long since a moment: "3 min 20 s". */
export function Age({ since }) {
  return html`<span class="countdown">${steady(Math.max(0, useNow() - since))}</span>`;
}

/** How far the clock of the broker is ahead of this one, of a moment that it has just told. */
export function useSkew(serverMs) {
  const [skew, setSkew] = useState(0);
  useEffect(() => {
    if (typeof serverMs === "number") setSkew(Date.now() - serverMs);
  }, [serverMs]);
  return skew;
}
