// The user who is logged in. The login lives as long as the tab and is sent with every request, by hand: the
// browser never knows it, and never asks for it in a window of its own.

import { includesTag } from "./refusals.js";
import { recall, remember, store, stored } from "./store.js";

const KEY = "leveret.login";

/** `{ authorization, name, tags, ends_at_ms }` of the logged-in user, or null. Without `ends_at_ms` the login does not end. */
export const session = store(recall(KEY, null, "sessionStorage"));

/** The reason for the login form, if there is one. */
export const farewell = store(null);

/** The vhost that lists are limited to; empty for all. */
export const chosenVhost = stored("leveret.vhost", "");

/** The value of the header `Authorization` for a user and a password, in UTF-8. */
export function basic(user, password) {
  const bytes = new TextEncoder().encode(`${user}:${password}`);
  return `Basic ${btoa(String.fromCharCode(...bytes))}`;
}

/** Keeps a login that the server has accepted. */
export function enter(authorization, { name, tags, login_session_timeout: minutes }) {
  const value = { authorization, name, tags, ends_at_ms: minutes ? Date.now() + minutes * 60_000 : null };
  remember(KEY, value, "sessionStorage");
  farewell.set(null);
  session.set(value);
}

/** Forgets the login; `reason` is shown above the form. */
export function leave(reason = null) {
  remember(KEY, null, "sessionStorage");
  farewell.set(reason);
  session.set(null);
}

/** Forgets a login that has lasted as long as the broker allows. */
export function leaveInTime() {
  const ends = session.get()?.ends_at_ms;
  if (ends && Date.now() >= ends) leave("Your login has ended. Log in again.");
}

/** The tags are what the broker says now, not at the login. */
export function setTags(tags) {
  const old = session.get();
  if (!old || old.tags.join() === tags.join()) return;
  const value = { ...old, tags };
  remember(KEY, value, "sessionStorage");
  session.set(value);
}

/** Counts the refusals that other tags would explain: the tags may have been changed since the login. */
export const doubts = store(0);
export const doubtTags = () => doubts.set((count) => count + 1);

/** True if the user has what a tag gives, by this tag or by one that includes it. */
export const hasTag = (tag) => includesTag(session.get()?.tags ?? [], tag);

/** Users, vhosts, permissions and definitions are for administrators. */
export const isAdministrator = () => hasTag("administrator");
/** Nodes and the clients of other users are shown to monitors. */
export const isMonitor = () => hasTag("monitoring");
/** Policies are for policymakers. */
export const isPolicymaker = () => hasTag("policymaker");
