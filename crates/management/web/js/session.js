// The user who is logged in. The login lives as long as the tab and is sent with every request, by hand: the
// browser never knows it, and never asks for it in a window of its own.

import { recall, remember, store, stored } from "./store.js";

const KEY = "leveret.login";

/** `{ authorization, name, tags }` of the logged-in user, or null. */
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
export function enter(authorization, { name, tags }) {
  const value = { authorization, name, tags };
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

const hasOneOf = (...tags) => (session.get()?.tags ?? []).some((tag) => tags.includes(tag));

/** May administer users, vhosts, permissions and definitions. */
export const isAdministrator = () => hasOneOf("administrator");
/** May see nodes and the clients of other users. */
export const isMonitor = () => hasOneOf("administrator", "monitoring");
/** May change policies. */
export const isPolicymaker = () => hasOneOf("administrator", "policymaker");
