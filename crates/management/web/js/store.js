// Values that more than one component looks at, with or without a place in the browser's storage.

import { useLayoutEffect, useReducer } from "./html.js";

/** A value with listeners. `set` takes a value, or a function of the old one. */
export function store(value) {
  const listeners = new Set();
  return {
    get: () => value,
    set(next) {
      const changed = typeof next === "function" ? next(value) : next;
      if (Object.is(changed, value)) return;
      value = changed;
      for (const listener of [...listeners]) listener();
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** What is stored under a key, or the fallback; a browser may have no storage at all. */
export function recall(key, fallback, storage = "localStorage") {
  try {
    const text = window[storage].getItem(key);
    return text === null ? fallback : JSON.parse(text);
  } catch {
    return fallback;
  }
}

/** Stores a value; null and undefined take the key away. */
export function remember(key, value, storage = "localStorage") {
  try {
    if (value === null || value === undefined) window[storage].removeItem(key);
    else window[storage].setItem(key, JSON.stringify(value));
  } catch {
    // It lasts as long as the page then.
  }
}

/** A store whose value outlives the page. */
export function stored(key, fallback, storage = "localStorage") {
  const kept = store(recall(key, fallback, storage));
  kept.subscribe(() => remember(key, kept.get(), storage));
  return kept;
}

/** The value of a store, as a hook: the component is drawn anew when it changes. */
export function useStore(from) {
  const [, again] = useReducer((count) => count + 1, 0);
  useLayoutEffect(() => from.subscribe(again), [from]);
  return from.get();
}
