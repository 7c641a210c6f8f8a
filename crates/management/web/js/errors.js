// Errors are always shown: in a bar at the top, until the user closes it or the error is over.

import { away } from "./away.js";
import { brokerNow } from "./clock.js";
import { moment } from "./format.js";
import { html, useErrorBoundary, useEffect } from "./html.js";
import { store, useStore } from "./store.js";

const SHOWN_MAX = 4;
const NOTE_MS = 4000;
/** A failure for want of the broker is shown so long after the broker is back. */
const PASSING_MS = 10_000;

let lastId = 0;
const faults = store([]);
const failing = store(new Map());
const notes = store([]);

/** Shows an error for the user to read: of the program, or of an action. */
export function report(error, doing = "") {
  if (error?.name === "AbortError") return;
  const text = `${doing ? `${doing}: ` : ""}${error?.message ?? error}`;
  // What the server refuses is no fault of the page.
  if (error?.name !== "ApiError") console.error(error);
  faults.set((all) => {
    const same = all.find((fault) => fault.text === text);
    if (same) return all.map((fault) => (fault === same ? { ...fault, count: fault.count + 1 } : fault));
    lastId += 1;
    return [{ id: lastId, text, count: 1, isPassing: Boolean(error?.isAway) }, ...all].slice(0, 20);
  });
}

/** Says for a moment that something has been done. */
export function note(text) {
  lastId += 1;
  const id = lastId;
  notes.set((all) => [...all, { id, text }]);
  setTimeout(() => notes.set((all) => all.filter((one) => one.id !== id)), NOTE_MS);
}

/** Requests that are repeated and fail: they disappear by themselves. */
export const problems = {
  met(url, error) {
    failing.set((all) => new Map(all).set(url, { error, since: all.get(url)?.since ?? brokerNow() }));
  },
  solved(url) {
    failing.set((all) => {
      if (!all.has(url)) return all;
      const rest = new Map(all);
      rest.delete(url);
      return rest;
    });
  },
};

/** Does something and shows what goes wrong; true if nothing did. */
export async function attempt(doing, action, done = "") {
  try {
    await action();
    if (done) note(done);
    return true;
  } catch (error) {
    report(error, doing);
    return false;
  }
}

/** Listens for everything that was not caught, and removes failures of the connection to the broker some time after its return. */
export function listen() {
  let timer = 0;
  away.subscribe(() => {
    clearTimeout(timer);
    if (!away.get()) timer = setTimeout(() => faults.set((all) => (all.some((one) => one.isPassing) ? all.filter((one) => !one.isPassing) : all)), PASSING_MS);
  });
  window.addEventListener("error", (event) => {
    // A browser's remark about its own pace, not an error.
    if (String(event.message).startsWith("ResizeObserver loop")) return;
    report(event.error ?? event.message, "The page has a fault");
  });
  window.addEventListener("unhandledrejection", (event) => !event.reason?.isAway && report(event.reason, "The page has a fault"));
}

/** The bar with errors, and the notes. */
export function ErrorBar() {
  const all = useStore(faults);
  const polled = [...useStore(failing).values()];
  const close = (id) => faults.set((old) => old.filter((fault) => fault.id !== id));
  const reasons = [...new Set(polled.map((problem) => problem.error.message))];
  const since = Math.min(...polled.map((problem) => problem.since));
  return html`<div class="errors" role="alert" data-test="errors">
    ${reasons.length > 0 && html`<p class="error-line" key="failing" data-test="stale">
      <span>Not up to date since ${moment(since)}: ${reasons.join("; ")}</span></p>`}
    ${all.slice(0, SHOWN_MAX).map((fault) => html`<p class="error-line" key=${fault.id} data-test="error">
      <span>${fault.text}${fault.count > 1 ? ` (${fault.count} times)` : ""}</span>
      <button type="button" class="quiet" onClick=${() => close(fault.id)} aria-label="Close this message">Close</button>
    </p>`)}
    ${all.length > SHOWN_MAX && html`<p class="error-line" key="more">
      <span>and ${all.length - SHOWN_MAX} more</span>
      <button type="button" class="quiet" onClick=${() => faults.set([])}>Close all</button></p>`}
  </div>`;
}

/** What has been done, for a moment. */
export function Notes() {
  return html`<div class="notes" role="status" data-test="notes">
    ${useStore(notes).map((one) => html`<p class="note" key=${one.id}>${one.text}</p>`)}
  </div>`;
}

/** Keeps a fault in what is drawn from taking the whole page with it. */
export function Fenced({ name, children }) {
  const [error, again] = useErrorBoundary();
  useEffect(() => {
    if (error) report(error, `${name} cannot be drawn`);
  }, [error]);
  if (!error) return children;
  return html`<div class="empty" data-test="fault"><p>${name} cannot be drawn: ${error.message}</p>
    <button type="button" onClick=${again}>Try again</button></div>`;
}
