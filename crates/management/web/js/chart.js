// Charts of what was: lines over time, of the samples that the server keeps.

import { away } from "./away.js";
import { brokerNow } from "./clock.js";
import { compact, moment, number } from "./format.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./html.js";
import { Help } from "./parts/help.js";
import { usePolled } from "./poll.js";
import { useOwnRange, withRange } from "./range.js";
import { theme } from "./settings.js";
import { useStore } from "./store.js";

export { useRange, withRange } from "./range.js";

const HEIGHT = 190;
const COLOURS = 8;
// Steps of an axis of bytes.
const BINARY = Array.from({ length: 50 }, (_, power) => 2 ** power);
// Not by colour alone: later lines are dashed.
const DASHES = [[], [], [], [8, 4], [8, 4], [2, 3], [2, 3], [10, 3, 2, 3]];
const LIMIT_DASH = [6, 4];
/** A limit so many times as high as what is drawn would make all else flat: it is drawn when asked for. */
const FAR = 4;
/** Samples that are farther from each other than so many times the usual distance are not joined by a line. */
const GAP = 3;
/** The broker's second finest samples, which remain when finer ones are dropped. */
const COARSE_MS = 60_000;

/** The samples of `..._details` as they are, oldest first: `[[ms, value], ...]`. */
export function levels(details) {
  return (details?.samples ?? []).map(({ timestamp, sample }) => [timestamp, sample]).reverse();
}

/** The same of what is never 0: from before the broker was started there are no samples. */
const levelsFromStart = (details) => levels(details).map(([at, value]) => [at, value || null]);

/** The change per second between samples. */
export function rates(details) {
  const points = levels(details);
  return points.slice(1).map(([at, value], index) => {
    const [before, old] = points[index];
    // Less than before: the counters were reset.
    return [at, at > before && value >= old ? ((value - old) * 1000) / (at - before) : null];
  });
}

/** Points with a null in each gap: while no samples were taken, there is no line. */
export function withGaps(points, stepMs) {
  const distances = points.slice(1).map(([at], index) => at - points[index][0]).sort((a, b) => a - b);
  const usual = Math.max(stepMs, COARSE_MS, distances[Math.floor((distances.length - 1) / 2)] ?? 0);
  return points.flatMap((point, index) => {
    const before = points[index - 1]?.[0];
    return before !== undefined && point[0] - before > GAP * usual ? [[before + 1, null], point] : [point];
  });
}

/**
 * One list of moments for all lines, as uPlot takes it: seconds. Null is a gap; undefined, where other lines have
 * a point, is none.
 */
function align(lines) {
  const moments = [...new Set(lines.flatMap((line) => line.map(([at]) => at)))].sort((a, b) => a - b);
  const columns = lines.map((line) => {
    const values = new Map(line);
    return moments.map((at) => values.get(at));
  });
  return [moments.map((at) => at / 1000), ...columns];
}

/** A limit as a line over the whole range. */
function limitLine({ label, value, hint }, lines, [, , age]) {
  const newest = Math.max(...lines.flatMap((line) => line.points.map(([at]) => at)));
  const most = Math.max(0, ...lines.flatMap((line) => [line.now ?? 0, ...line.points.map(([, at]) => at ?? 0)]));
  const points = Number.isFinite(newest) ? [[newest - age * 1000, value], [newest, value]] : [];
  return { label, points, now: value, hint, isLimit: true, isFar: value > FAR * most };
}

/** The moments on the axis: with seconds where little is shown. */
function clock(self, splits) {
  const { min, max } = self.scales.x;
  const hasSeconds = max - min < 240;
  return splits.map((second) => new Date(second * 1000).toLocaleTimeString([], {
    hour: "2-digit", minute: "2-digit", ...(hasSeconds && { second: "2-digit" }), hourCycle: "h23",
  }));
}

/** The colour that a custom property stands for, as a canvas takes it. */
function colour(element, name) {
  element.style.color = `var(${name})`;
  const value = getComputedStyle(element).color;
  element.style.color = "";
  return value;
}

/**
 * A chart: `lines` are `{ label, points, now, hint }`, with `points` from `levels` or `rates` and `now` the
 * value of this moment; `format` says how values look. A line's name in the legend switches it off and on.
 *
 * With a `source`, `{ url, kinds, isShort }`, the chart has a range of its own: `lines` is a function of the
 * resource then, and `data` the resource with the samples of the page's `range`. `limits`, a function of the
 * resource as well, gives `{ label, value, hint }`: what values must not reach.
 */
export function Chart({ title, lines, limits, data: given, source, format = number, range: pageRange, actions, test }) {
  const [range, picker] = useOwnRange(test, title, pageRange, source?.isShort);
  const isOwn = Boolean(source) && range[0] !== pageRange[0];
  const own = usePolled(isOwn ? withRange(source.url, range, source.kinds) : null);
  const resource = (isOwn && own.data) || given;
  const all = useMemo(() => {
    const drawn = typeof lines === "function" ? lines(resource) : lines;
    const known = (limits?.(resource) ?? []).filter(({ value }) => value > 0);
    return [...drawn, ...known.map((limit) => limitLine(limit, drawn, range))];
  }, [lines, limits, resource, range]);
  return html`<${Drawing} title=${title} lines=${all} format=${format} range=${range} test=${test}
    actions=${html`${source && picker}${actions}`} />`;
}

function Drawing({ title, lines, format, range, actions, test }) {
  const box = useRef(null);
  const probe = useRef(null);
  const plot = useRef(null);
  // Lines that were switched from what they are by themselves.
  const [switched, setSwitched] = useState(() => new Set());
  const [cursor, setCursor] = useState(null);
  const [isReady, setIsReady] = useState(false);
  const chosenTheme = useStore(theme);
  const isCurrent = useStore(away) === null;
  const isDark = useDarkness();
  const [, , age, step] = range;
  const data = useMemo(() => align(lines.map((line) => (line.isLimit ? line.points : withGaps(line.points, step * 1000)))), [lines, step]);
  const labels = lines.map((line) => line.label).join("|");
  const isHidden = (line) => switched.has(line.label) !== Boolean(line.isFar);
  // What the plot, made once, looks at later.
  const newest = useRef({});
  newest.current = { data, age };

  useEffect(() => {
    let isGone = false;
    let observer;
    import("../vendor/uplot.js").then(({ default: UPlot }) => {
      if (isGone) return;
      const paint = (name) => colour(probe.current, name);
      const axis = { stroke: paint("--text-muted"), grid: { stroke: paint("--line-faint"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
      const made = new UPlot({
        width: Math.max(120, box.current.clientWidth),
        height: HEIGHT,
        padding: [8, 4, 0, 0],
        legend: { show: false },
        cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
        scales: { x: { time: true, range: () => axisOf(newest.current) }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(high * 1.08 || 0, 1)] } },
        axes: [
          { ...axis, space: 70, size: 26, values: (self, splits) => clock(self, splits) },
          { ...axis, size: 58, ...(format.isBytes && { incrs: BINARY }), space: 32, values: (_, splits) => splits.map((value) => (format.isBytes ? format(value) : value < 10 ? String(Number(value.toFixed(2))) : compact(value))) },
        ],
        series: [{}, ...lines.map((line, index) => ({
          label: line.label,
          stroke: paint(line.isLimit ? "--danger" : `--series-${(index % COLOURS) + 1}`),
          dash: line.isLimit ? LIMIT_DASH : DASHES[index % COLOURS],
          width: 1.75,
          points: { show: false },
          show: !isHidden(line),
        }))],
        hooks: { setCursor: [(self) => setCursor(self.cursor.idx ?? null)] },
      }, newest.current.data, box.current);
      plot.current = made;
      observer = new ResizeObserver(([entry]) => {
        const width = Math.floor(entry.contentRect.width);
        if (width > 0 && width !== made.width) made.setSize({ width, height: HEIGHT });
      });
      observer.observe(box.current);
      setIsReady(true);
    });
    return () => {
      isGone = true;
      observer?.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [labels, isDark, chosenTheme]);

  useLayoutEffect(() => plot.current?.setData(data), [data, age, isReady]);
  useLayoutEffect(() => {
    lines.forEach((line, index) => {
      const series = plot.current?.series[index + 1];
      if (series && series.show === isHidden(line)) plot.current.setSeries(index + 1, { show: !isHidden(line) });
    });
  }, [lines, switched, isReady]);

  const toggle = (label) => setSwitched((old) => {
    const next = new Set(old);
    if (!next.delete(label)) next.add(label);
    return next;
  });
  const at = cursor !== null && data[0][cursor] !== undefined ? cursor : null;
  const time = data[0].length === 0 ? "" : at === null && isCurrent ? "now" : moment(data[0].at(at ?? -1) * 1000);
  const shown = (line, index) => format(at === null || line.isLimit ? line.now ?? line.points.at(-1)?.[1] : data[index + 1][at]);
  const summary = lines.filter((line) => !line.isLimit).map((line) => {
    const values = line.points.map(([, value]) => value).filter((value) => value !== null);
    return `${line.label} ${format(line.now ?? values.at(-1))}, at most ${format(values.length > 0 ? Math.max(...values) : undefined)}`;
  }).join("; ");
  return html`<section class="card chart" data-test=${test}>
    <header><h2>${title}<${Help} term=${title} /></h2><span class="muted chart-moment">${time}</span>${actions}</header>
    <span ref=${probe} hidden></span>
    <div class="chart-box" ref=${box} role="img" aria-label=${`${title}, ${range[1].toLowerCase()}: ${summary}`}></div>
    ${data[0].length < 2 && html`<p class="chart-none muted">No samples yet.</p>`}
    <ul class="legend">${lines.map((line, index) => html`<li key=${line.label}>
      <button type="button" class=${line.isLimit ? "is-limit" : ""} aria-pressed=${!isHidden(line)} title=${line.hint} onClick=${() => toggle(line.label)}>
        <span class=${line.isLimit ? "swatch swatch-limit" : `swatch swatch-${(index % COLOURS) + 1}`} aria-hidden="true"></span>
        <span>${line.label}</span><b>${shown(line, index)}</b></button></li>`)}</ul>
  </section>`;
}

/** The ends of the axis: all of the range, also where no samples are. */
export function axisOf({ data: [moments], age }) {
  const end = moments.length > 0 ? moments.at(-1) : brokerNow() / 1000;
  return [end - age, end];
}

/** Whether the system is dark, for users without a choice of their own. */
function useDarkness() {
  const query = useMemo(() => matchMedia("(prefers-color-scheme: dark)"), []);
  const [isDark, setIsDark] = useState(query.matches);
  useEffect(() => {
    const change = () => setIsDark(query.matches);
    query.addEventListener("change", change);
    return () => query.removeEventListener("change", change);
  }, []);
  return isDark;
}

/** A line of `Chart`: how fast something happens. */
export const rateLine = (label, details, hint) => ({ label, points: rates(details), now: details?.rate, hint });

/** A line of `Chart`: how much there is. */
export const levelLine = (label, details, now, hint) => ({ label, points: levels(details), now, hint });

/** The same for what is never 0, as memory that is used. */
export const lastingLine = (label, details, now, hint) => ({ label, points: levelsFromStart(details), now, hint });
