// Whether the broker can be reached: one state for the whole page, and the tries to reach it again.

import { brokerNow, stop } from "./clock.js";
import { useEffect, useRef } from "./html.js";
import { store } from "./store.js";

/** Seconds until the next try, after each try that failed; the last is for all later ones. */
const PAUSES_S = [1, 2, 3, 5, 8, 10];

/**
 * Null while the broker answers. Otherwise `{ reason, isStopped, answeredAt, tries, nextAt }`: `answeredAt` is the time
 * of the last answer by the broker's clock (0: none), `nextAt` the time of the next try (0: a try runs).
 */
export const away = store(null);

let answeredAt = 0;
let timer = 0;
let probe = () => Promise.resolve();

/** The broker has answered. */
export function found() {
  answeredAt = brokerNow();
  clearTimeout(timer);
  away.set(null);
}

/** The broker has not answered, or is stopped. The first loss starts the tries. */
export function lost(reason, { isStopped = false } = {}) {
  const old = away.get();
  if (old) {
    if (old.reason !== reason) away.set({ ...old, reason, isStopped });
    return;
  }
  stop();
  away.set({ reason, isStopped, answeredAt, tries: 0, nextAt: 0 });
  plan();
}

function plan() {
  clearTimeout(timer);
  const state = away.get();
  const pauseMs = PAUSES_S[Math.min(state.tries, PAUSES_S.length - 1)] * 1000;
  away.set({ ...state, nextAt: Date.now() + pauseMs });
  timer = setTimeout(() => !document.hidden && tryNow(), pauseMs);
}

/** Tries to reach the broker at once, if no try runs. */
export async function tryNow() {
  const state = away.get();
  if (!state || state.nextAt === 0) return;
  clearTimeout(timer);
  away.set({ ...state, tries: state.tries + 1, nextAt: 0 });
  // The request itself says what came of it; an error is an answer, too.
  await probe().catch(() => {});
  if (away.get()) plan();
}

/** Tries with `ask` from now on, also when the network or the tab comes back. */
export function follow(ask) {
  probe = ask;
  window.addEventListener("online", tryNow);
  document.addEventListener("visibilitychange", () => !document.hidden && tryNow());
}

/** Calls `action` each time when the broker answers again, as long as the component is drawn. */
export function useBack(action) {
  const latest = useRef(action);
  latest.current = action;
  useEffect(() => away.subscribe(() => !away.get() && latest.current()), []);
}
