// Whether the broker serves the page that runs here, or that of another version: the modules of two are never mixed.

import { away } from "./away.js";
import { note } from "./errors.js";
import { store } from "./store.js";

const CHECK_MS = 60_000;
/** The page is loaded again by itself once in this time: two brokers behind one address must not make a loop. */
const RELOAD_MS_MIN = 60_000;
const KEY = "leveret.updated";

/** True if the broker serves another page than the one that runs. */
export const isOutdated = store(false);

let loaded = null;
let hasTyped = false;

/** What names the files of the page as a whole, or null if nothing does. */
async function current() {
  const answer = await fetch("./", { method: "HEAD", cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(10_000) });
  return answer.ok ? answer.headers.get("etag")?.replace(/^W\//, "").replace(/-gzip"$/, '"') ?? null : null;
}

/** Loads the page again; login, address and choices stay. */
export function reload() {
  try {
    sessionStorage.setItem(KEY, Date.now());
  } catch {
    // The page says nothing after the reload then.
  }
  location.reload();
}

function lastReload() {
  try {
    return Number(sessionStorage.getItem(KEY)) || 0;
  } catch {
    // Without storage the page is never loaded again by itself.
    return Date.now();
  }
}

/** Nothing that a user has typed or opened is lost by a reload. */
const isFree = () => !hasTyped && !document.querySelector("dialog[open]");

/** Compares the versions, and reloads if nothing is lost by it. */
async function check() {
  if (document.hidden || away.get()) return;
  const now = await current().catch(() => null);
  if (now === null || away.get()) return;
  loaded ??= now;
  isOutdated.set(now !== loaded);
  if (now !== loaded && isFree() && Date.now() - lastReload() > RELOAD_MS_MIN) reload();
}

/** Checks again and again, and each time when the broker or the tab comes back. */
export function watch() {
  if (Date.now() - lastReload() < 5000) note("The broker was updated: this is the page of its new version.");
  document.addEventListener("input", (event) => {
    hasTyped ||= Boolean(event.target.closest("#main form, dialog form"));
  });
  window.addEventListener("hashchange", () => {
    hasTyped = false;
    // Another page begins anew anyway.
    if (isOutdated.get() && isFree()) reload();
  });
  away.subscribe(() => away.get() === null && check());
  document.addEventListener("visibilitychange", check);
  setInterval(check, CHECK_MS);
  check();
}
