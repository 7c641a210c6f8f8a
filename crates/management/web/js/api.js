// The HTTP API: every request of the page goes through `request`.

import { found, lost } from "./away.js";
import { TIME_HEADER, hear } from "./clock.js";
import { endOfSession, sentence } from "./refusals.js";
import { doubtTags, leave, session } from "./session.js";

/** How long a reading and a change may take. */
const READ_MS = 15_000;
const CHANGE_MS = 60_000;

const UNREACHED = "The broker cannot be reached";
const STOPPED = "the rabbit app is stopped";
const STOPPED_SENTENCE = "This node is stopped and serves no clients. Run leveretctl start_app on its machine to start it";

/** Why a request did not give what it asked for; `message` is the server's reason, in a sentence if there is one. */
export class ApiError extends Error {
  constructor(status, error, reason, url) {
    super(sentence(reason) || error || `HTTP ${status}`);
    this.name = "ApiError";
    // `isAway`: there was no answer of the broker; the bar about that says so.
    Object.assign(this, { status, error, reason, url, isAway: error === "away" });
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
 * answer given, as it is: JSON may hold numbers that this page cannot. With `isDryRun` nothing is changed by it.
 * `onPart` is told of a good answer whether it `isStale`, and which nodes of the cluster are `missing` in it.
 */
export async function request(method, url, body, { signal, authorization, headers = {}, isText = false, isDryRun = false, onPart } = {}) {
  const sent = authorization ?? session.get()?.authorization;
  const all = { accept: "application/json", ...headers };
  if (sent) all.authorization = sent;
  if (body !== undefined) all["content-type"] = "application/json";
  const options = { method, headers: all, body: body === undefined || isText ? body : JSON.stringify(body) };
  const isChange = method !== "GET" && !isDryRun;
  const answer = await answerOf(url, options, isChange, signal);
  const { status, text } = answer;
  const parsed = parse(text);
  const missing = whyMissing(answer, parsed);
  if (missing) throw awayError(missing, isChange, url, parsed?.reason === STOPPED);
  hear(answer.time);
  found();
  if (answer.isGood) {
    onPart?.({ isStale: answer.isStale, missing: answer.missing });
    return isText ? text : parsed;
  }
  const reason = [parsed?.reason ?? `a proxy answered ${statusOf(answer)}`].flat().map(words).join("; ");
  const end = !authorization && sent === session.get()?.authorization && endOfSession(status, parsed);
  if (end) leave(end);
  else if (status === 401) doubtTags();
  throw new ApiError(status, parsed?.error, reason, url);
}

/** The answer as it came. A reading is sent once more if its connection breaks: it may have been an old one. */
async function answerOf(url, options, isChange, signal) {
  let sent = await sendOnce(url, options, signal);
  if (sent.failure && !isChange && !sent.isSilent) sent = await sendOnce(url, options, signal);
  if (sent.failure) throw awayError(sent.failure, isChange, url);
  return sent;
}

/** The answer, or `{ failure, isSilent }`. Throws only if `signal` aborts. */
async function sendOnce(url, options, signal) {
  const own = new AbortController();
  const limitMs = options.method === "GET" ? READ_MS : CHANGE_MS;
  const timer = setTimeout(() => own.abort(), limitMs);
  let hasBegun = false;
  try {
    // Relative to the page, which may be below a prefix.
    const answer = await fetch(url.slice(1), {
      ...options,
      credentials: "omit",
      cache: "no-store",
      signal: signal ? AbortSignal.any([signal, own.signal]) : own.signal,
    });
    hasBegun = true;
    const { status, statusText, ok: isGood, headers } = answer;
    const isJson = /json/.test(headers.get("content-type") ?? "");
    const [isStale, missing] = [headers.has("leveret-stale"), headers.get("leveret-incomplete")];
    return { status, statusText, isGood, isJson, isStale, missing, time: headers.get(TIME_HEADER), text: await answer.text() };
  } catch (cause) {
    if (signal?.aborted) throw cause;
    const isSilent = own.signal.aborted;
    return { isSilent, failure: isSilent ? `${UNREACHED}: no answer for ${limitMs / 1000} s` : hasBegun ? `${UNREACHED}: the answer was cut off` : UNREACHED };
  } finally {
    clearTimeout(timer);
  }
}

const statusOf = ({ status, statusText }) => `${status} ${statusText}`.trim();

/** Why an answer is none of a running broker, or null: a proxy may answer instead, and connections end early. */
function whyMissing(answer, parsed) {
  const { status, text, isJson } = answer;
  if (status === 503 && parsed?.reason === STOPPED) return STOPPED_SENTENCE;
  if (isJson && parsed === undefined) return `${UNREACHED}: the answer was cut off`;
  const isOfProxy = status === 502 || status === 504 || (status === 503 && !isJson);
  const isNone = text !== "" && !isJson && (status < 400 || status === 404 || status >= 500);
  return isOfProxy || isNone ? `${UNREACHED}: a proxy answered ${statusOf(answer)}` : null;
}

/** Takes the broker as away, and gives the error to throw. */
function awayError(reason, isChange, url, isStopped = false) {
  lost(`${reason}.`, { isStopped });
  const rest = !isChange || isStopped ? "" : " Whether the change was made is not known.";
  return new ApiError(0, "away", `${reason}.${rest}`, url);
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

/** The value of a text of JSON; null for none, undefined for anything else. */
function parse(text) {
  if (text === "") return null;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
