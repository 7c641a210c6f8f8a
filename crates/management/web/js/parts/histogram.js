// When messages will expire or are due: bars, and the same in words.

import { count, duration, number } from "../format.js";
import { html, useLayoutEffect, useRef, useState } from "../html.js";

const HEIGHT = 190;
const BASE = HEIGHT - 22;
const LABEL_WIDTH = 90;

/** A duration with two digits: bars are no rulers. */
export function about(ms) {
  const digits = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, ms))) - 1);
  return duration(ms < 100_000 ? Math.round(ms / digits) * digits : ms);
}

const span = ({ from_ms: from, to_ms: to }) => `${about(Math.max(0, from))} to ${about(to)}`;

/** Within how long half of what expires is gone; null if nothing does. */
export function half({ buckets, overdue = 0 }) {
  const total = buckets.reduce((sum, bucket) => sum + bucket.count, overdue);
  if (total === 0) return null;
  let sum = overdue;
  for (const bucket of buckets) {
    sum += bucket.count;
    if (sum * 2 >= total) return bucket.to_ms;
  }
  return 0;
}

/** A histogram of `.../expiry` in sentences. */
export function inWords(expiry) {
  const { buckets, never, overdue, estimated } = expiry;
  const within = half(expiry);
  const last = [...buckets].reverse().find((bucket) => bucket.count > 0);
  return [
    within !== null && `Half of the expiring messages expire within ${about(Math.max(0, within))}${last ? `, the last within ${about(last.to_ms)}` : ""}.`,
    never > 0 && `${count(never, "message")} ${never === 1 ? "has" : "have"} no deadline.`,
    overdue > 0 && `${count(overdue, "message")} ${overdue === 1 ? "is" : "are"} overdue.`,
    estimated > 0 && `The deadlines of ${count(estimated, "message")} on disk are estimated.`,
  ].filter(Boolean);
}

/** When the messages of a queue expire; of a queue where nothing expires it says so. */
export const Histogram = ({ expiry }) => html`<${Bars} buckets=${expiry.buckets} words=${inWords(expiry)} empty="No message here expires." test="expiry" />`;

/** Numbers of messages by time, and the same in words. Times are from now, or if not `isRelative` from the first bar. */
export function Bars({ buckets, words, empty = "", isRelative = true, test }) {
  const most = Math.max(1, ...buckets.map((bucket) => bucket.count));
  const box = useRef(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const step = width / Math.max(1, buckets.length);
  const every = Math.max(1, Math.ceil((buckets.length * LABEL_WIDTH) / Math.max(1, width)));
  const hasBars = buckets.some((bucket) => bucket.count > 0);
  const after = isRelative ? "in" : "+";
  return html`<div class="histogram" data-test=${test} ref=${box}>
    ${hasBars && width > 0 && html`<svg width=${width} height=${HEIGHT} role="img" aria-label=${words.join(" ")}>
      <text class="axis" x="0" y="10">${number(most)}</text>
      <line class="base" x1="0" x2=${width} y1=${BASE} y2=${BASE} />
      ${buckets.map((bucket, index) => {
        const height = bucket.count === 0 ? 0 : Math.max(2, (bucket.count / most) * (BASE - 16));
        return html`<g key=${index}>
          <rect class="bar" x=${index * step + 1} width=${Math.max(1, step - 2)} y=${BASE - height} height=${height} rx="1.5" />
          <rect class="reach" x=${index * step} width=${step} y="0" height=${BASE}><title>${`${after} ${span(bucket)}: ${count(bucket.count, "message")}`}</title></rect>
          ${index % every === 0 && html`<text class="axis" x=${index * step + 1} y=${HEIGHT - 5}>${index === 0 && bucket.from_ms <= 0 ? (isRelative ? "now" : "0") : `${after} ${about(bucket.from_ms)}`}</text>`}
        </g>`;
      })}</svg>`}
    <p class="muted">${words.length > 0 ? words.join(" ") : empty}</p>
  </div>`;
}
