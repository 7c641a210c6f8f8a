// The time of the broker: told by each answer, carried on by the browser's stopwatch. The browser's own clock may
// be wrong, so no age and no countdown reads it.

/** The header of each answer of the API: milliseconds since 1970 by the broker's clock. */
export const TIME_HEADER = "leveret-time-ms";

/** The time in the last answer, and the stopwatch at that moment. */
let told = null;
let stoppedAt = null;

/** Takes the time from an answer: the value of its header. */
export function hear(value) {
  const ms = Number(value);
  if (!(ms > 0)) return;
  told = { ms, at: performance.now() };
  stoppedAt = null;
}

/** Stops the clock until the next answer: the broker is away, and nothing shown is known to be true. */
export function stop() {
  stoppedAt ??= brokerNow();
}

/** The time of the broker; before its first answer, that of the browser. */
export function brokerNow() {
  if (stoppedAt !== null) return stoppedAt;
  return told === null ? Date.now() : Math.round(told.ms + performance.now() - told.at);
}
