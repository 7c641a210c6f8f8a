// The HTTP API: every request of the page goes through `request`.

import { leave, session } from "./session.js";
import { store } from "./store.js";

const TIMEOUT_MS = 30_000;
const STOPPED = "the rabbit app is stopped";

/** The node answers that it is stopped. */
export const isStopped = store(false);

/** Why a request did not give what it asked for; `message` is the server's reason. */
export class ApiError extends Error {
  constructor(status, error, reason, url) {
    super(reason || error || `HTTP ${status}`);
    this.name = "ApiError";
    Object.assign(this, { status, error, reason, url });
  }
}

/** The path of a resource; names are encoded: `path("queues", "/", "a b")` is `/api/queues/%2F/a%20b`. */
export const path = (...names) => `/api/${names.map(encodeURIComponent).join("/")}`;

/** The path of an exchange, or of what is below it; the default one has a name in paths. */
export const exchangePath = (vhost, name, ...rest) =>
  path("exchanges", vhost, name === "" ? "amq.default" : name, ...rest);

/** A path with a query; what is null, undefined, false or empty is left out. */
export function withQuery(url, query = {}) {
  const pairs = Object.entries(query).filter(([, value]) => (value ?? "") !== "" && value !== false);
  const text = new URLSearchParams(pairs).toString();
  return text === "" ? url : `${url}${url.includes("?") ? "&" : "?"}${text}`;
}

/** What is at a path. `options.signal` aborts. */
export const get = (url, query, options) => request("GET", withQuery(url, query), undefined, options);
export const put = (url, body = {}, options) => request("PUT", url, body, options);
export const post = (url, body = {}, options) => request("POST", url, body, options);
export const del = (url, query, options) => request("DELETE", withQuery(url, query), undefined, options);

/**
 * Sends a request and gives the JSON of its answer, or null if that is empty. With `isText` the body is sent, and the
 * answer given, as it is: JSON may hold numbers that this page cannot.
 */
export async function request(method, url, body, { signal, authorization, headers = {}, isText = false } = {}) {
  const sent = authorization ?? session.get()?.authorization;
  const all = { accept: "application/json", ...headers };
  if (sent) all.authorization = sent;
  if (body !== undefined) all["content-type"] = "application/json";
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  let answer, text;
  try {
    // Relative to the page, which may be below a prefix.
    answer = await fetch(url.slice(1), {
      method,
      headers: all,
      body: body === undefined || isText ? body : JSON.stringify(body),
      credentials: "omit",
      cache: "no-store",
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    text = await answer.text();
  } catch (cause) {
    if (signal?.aborted) throw cause;
    const reason = timeout.aborted
      ? `the broker has not answered for ${TIMEOUT_MS / 1000} seconds`
      : "the broker cannot be reached";
    throw new ApiError(0, "unreachable", reason, url);
  }
  const parsed = parse(text);
  isStopped.set(answer.status === 503 && parsed?.reason === STOPPED);
  if (answer.ok) return isText ? text : parsed;
  const reason = [parsed?.reason ?? answer.statusText].flat().map(words).join("; ");
  // Only this error is about who asks; `not_authorised` is about what.
  if (answer.status === 401 && parsed?.error === "not_authorized" && !authorization) {
    leave("The broker does not accept this login any more: log in again.");
  }
  throw new ApiError(answer.status, parsed?.error, reason, url);
}

/** A missing tag is told in RabbitMQ's words, which clients match on. */
const MISSING_TAG = /^Not (administrator|monitor|policymaker|management)\w* user$/;
const TAGS = { monitor: "monitoring" };

/** A reason of the server as a sentence of the page. */
function words(reason) {
  if (typeof reason !== "string") return JSON.stringify(reason);
  const [, tag] = MISSING_TAG.exec(reason) ?? [];
  return tag ? `Your user lacks the tag ${TAGS[tag] ?? tag}.` : reason;
}

function parse(text) {
  if (text === "") return null;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
