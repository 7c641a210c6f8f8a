// How values look. All of them give a dash for what is not known.

import { brokerNow } from "./clock.js";

export const DASH = "\u2013";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

/** 12,345; what rounds to nothing is 0 without a sign. */
export const number = (value) => (isNumber(value) ? whole.format(Math.abs(value) < 0.5 ? 0 : value) : DASH);

/** 12.3k: where there is little room; the whole number belongs into the title. */
export function compact(value) {
  if (!isNumber(value)) return DASH;
  const size = Math.abs(value);
  if (size < 10_000) return whole.format(value);
  const [unit, by] = size < 1e6 ? ["k", 1e3] : size < 1e9 ? ["M", 1e6] : ["G", 1e9];
  return `${short.format(value / by)}${unit}`;
}

/** A number of things per second: 0.2/s, 1,234/s. There are never fewer than none: a counter that falls is counted anew. */
export function rate(value) {
  if (!isNumber(value)) return DASH;
  const size = Math.max(0, value);
  const text = size === 0 ? "0" : size < 10 ? size.toFixed(1) : whole.format(size);
  return `${text === "0.0" ? "<0.1" : text}/s`;
}

/** The rate in a `..._details`. */
export const rateOf = (details) => rate(details?.rate);

const BYTES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** 1.5 MiB */
export function bytes(value) {
  if (!isNumber(value)) return DASH;
  const step = value < 1 ? 0 : Math.min(BYTES.length - 1, Math.floor(Math.log2(value) / 10));
  return `${step === 0 ? whole.format(value) : short.format(value / 1024 ** step)} ${BYTES[step]}`;
}

/** Bytes per second. */
export const byteRate = (value) => (isNumber(value) ? `${bytes(value)}/s` : DASH);

/** 0.5 ms, 12 s, 3 min 20 s, 2 h 5 min, 3 d 4 h: two units at most. */
export function duration(ms) {
  if (!isNumber(ms)) return DASH;
  if (ms < 0) return `-${duration(-ms)}`;
  if (ms < 1000) return `${short.format(ms)} ms`;
  if (ms < 60_000) return `${short.format(ms / 1000)} s`;
  const [unit, below, size, part] = ms < 3_600_000
    ? ["min", "s", 60_000, 1000]
    : ms < 86_400_000 ? ["h", "min", 3_600_000, 60_000] : ["d", "h", 86_400_000, 3_600_000];
  const rest = Math.floor((ms % size) / part);
  return `${whole.format(Math.floor(ms / size))} ${unit}${rest ? ` ${rest} ${below}` : ""}`;
}

/** A moment of the wall clock, in milliseconds since 1970: with seconds, and the day if it is not today. */
export function moment(ms) {
  if (!isNumber(ms)) return DASH;
  const date = new Date(ms);
  const isToday = date.toDateString() === new Date(brokerNow()).toDateString();
  const time = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
  return isToday ? time : `${date.toLocaleDateString([], { year: "numeric", month: "short", day: "numeric" })}, ${time}`;
}

/** "3 min 20 s ago", of a moment; "in 5 s" of one to come. */
export function ago(ms, now = brokerNow()) {
  if (!isNumber(ms)) return DASH;
  return ms > now ? `in ${duration(ms - now)}` : `${duration(now - ms)} ago`;
}

/** 0.413 is 41 % */
export const percent = (share) => (isNumber(share) ? `${whole.format(share * 100)} %` : DASH);

/** The noun that fits a number: "message" for 1, else "messages"; "policies" for 2. */
export const noun = (value, one, many = `${one}s`.replace(/([^aeiou])ys$/, "$1ies")) => (value === 1 ? one : many);

/** "1 message", "1,805 messages", "2 policies": every number of things in a sentence. */
export const count = (value, one, many) => `${number(value)} ${noun(value, one, many)}`;

const INVISIBLE = /[\u0080-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

/** A name with signs for characters that cannot be seen, or that would turn the text around them. */
export const visible = (name) => (typeof name !== "string" ? name : name
  .replace(/[\u0000-\u001f]/g, (control) => String.fromCharCode(0x2400 + control.charCodeAt(0)))
  .replace(/\u007f/g, "\u2421")
  .replace(INVISIBLE, (hidden) => `\u27e8U+${hidden.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}\u27e9`));

/** Any value of JSON on one line: texts as they are, the rest as JSON. */
export const plain = (value) =>
  (value === undefined || value === null ? DASH : typeof value === "string" ? value : JSON.stringify(value));
