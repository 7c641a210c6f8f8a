// Charts of what was: lines over time, of the samples that the server keeps.

import { compact, moment, number } from "./format.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./html.js";
import { withQuery } from "./api.js";
import { Help } from "./parts/help.js";
import { theme } from "./settings.js";
import { stored, useStore } from "./store.js";

/** What can be looked back to: name, title, seconds, seconds between two samples. */
export const RANGES = [
  ["minute", "Last minute", 60, 5],
  ["ten-minutes", "Last ten minutes", 600, 5],
  ["hour", "Last hour", 3600, 60],
  ["eight-hours", "Last eight hours", 28_800, 600],
  ["day", "Last day", 86_400, 1800],
];

const chosenRange = stored("leveret.range", "ten-minutes");
const HEIGHT = 190;
const COLOURS = 8;
// Steps of an axis of bytes.
const BINARY = Array.from({ length: 50 }, (_, power) => 2 ** power);
// Not by colour alone: later lines are dashed.
const DASHES = [[], [], [], [8, 4], [8, 4], [2, 3], [2, 3], [10, 3, 2, 3]];

/**
 * What all charts of a page look back to: `[range, picker]`. Things other than vhosts and the node have samples
 * of an hour only: `isShort` leaves the rest out.
 */
export function useRange({ isShort = false } = {}) {
  const name = useStore(chosenRange);
  const ranges = isShort ? RANGES.slice(0, 3) : RANGES;
  const range = ranges.find(([key]) => key === name) ?? ranges[1];
  const picker = html`<label class="picker"><span class="sr-only">Charts show</span>
    <select data-test="range" value=${range[0]} onInput=${(event) => chosenRange.set(event.target.value)}>
      ${ranges.map(([key, title]) => html`<option key=${key} value=${key} selected=${key === range[0]}>${title}</option>`)}</select></label>`;
  return [range, picker];
}

/** A resource with samples of a range: of which kinds says `kinds` (lengths, msg_rates, data_rates, node_stats). */
export function withRange(url, [, , age, step], kinds = ["lengths", "msg_rates"]) {
  return withQuery(url, Object.fromEntries(kinds.flatMap((kind) => [[`${kind}_age`, age], [`${kind}_incr`, step]])));
}

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

/** One list of moments for all lines, as uPlot takes it: seconds, and null where a line has nothing. */
function align(lines) {
  const moments = [...new Set(lines.flatMap((line) => line.map(([at]) => at)))].sort((a, b) => a - b);
  const columns = lines.map((line) => {
    const values = new Map(line);
    return moments.map((at) => values.get(at) ?? null);
  });
  return [moments.map((at) => at / 1000), ...columns];
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
 */
export function Chart({ title, lines, format = number, range, actions, test }) {
  const box = useRef(null);
  const probe = useRef(null);
  const plot = useRef(null);
  const [hidden, setHidden] = useState(() => new Set());
  const [cursor, setCursor] = useState(null);
  const [isReady, setIsReady] = useState(false);
  const chosenTheme = useStore(theme);
  const isDark = useDarkness();
  const data = useMemo(() => align(lines.map((line) => line.points)), [lines]);
  const labels = lines.map((line) => line.label).join("|");
  const newest = useRef(data);
  newest.current = data;

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
        scales: { x: { time: true }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(high * 1.08 || 0, 1)] } },
        axes: [
          { ...axis, space: 70, size: 26, values: (self, splits) => clock(self, splits) },
          { ...axis, size: 58, ...(format.isBytes && { incrs: BINARY }), space: 32, values: (_, splits) => splits.map((value) => (format.isBytes ? format(value) : value < 10 ? String(Number(value.toFixed(2))) : compact(value))) },
        ],
        series: [{}, ...lines.map((line, index) => ({
          label: line.label,
          stroke: paint(`--series-${(index % COLOURS) + 1}`),
          dash: DASHES[index % COLOURS],
          width: 1.75,
          points: { show: false },
          spanGaps: true,
          show: !hidden.has(line.label),
        }))],
        hooks: { setCursor: [(self) => setCursor(self.cursor.idx ?? null)] },
      }, newest.current, box.current);
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

  useLayoutEffect(() => plot.current?.setData(data), [data, isReady]);
  useLayoutEffect(() => {
    lines.forEach((line, index) => {
      const series = plot.current?.series[index + 1];
      if (series && series.show === hidden.has(line.label)) plot.current.setSeries(index + 1, { show: !hidden.has(line.label) });
    });
  }, [hidden, isReady]);

  const toggle = (label) => setHidden((old) => {
    const next = new Set(old);
    if (!next.delete(label)) next.add(label);
    return next;
  });
  const at = cursor !== null && data[0][cursor] !== undefined ? cursor : null;
  const shown = (line, index) => format(at === null ? line.now ?? line.points.at(-1)?.[1] : data[index + 1][at]);
  const summary = lines.map((line) => {
    const values = line.points.map(([, value]) => value).filter((value) => value !== null);
    return `${line.label} ${format(line.now ?? values.at(-1))}, at most ${format(values.length > 0 ? Math.max(...values) : undefined)}`;
  }).join("; ");
  return html`<section class="card chart" data-test=${test}>
    <header><h2>${title}<${Help} term=${title} /></h2><span class="muted chart-moment">${at === null ? "now" : moment(data[0][at] * 1000)}</span>${actions}</header>
    <span ref=${probe} hidden></span>
    <div class="chart-box" ref=${box} role="img" aria-label=${`${title}, ${range ? range[1].toLowerCase() : ""}: ${summary}`}></div>
    ${data[0].length < 2 && html`<p class="chart-none muted">No samples yet.</p>`}
    <ul class="legend">${lines.map((line, index) => html`<li key=${line.label}>
      <button type="button" aria-pressed=${!hidden.has(line.label)} title=${line.hint} onClick=${() => toggle(line.label)}>
        <span class=${`swatch swatch-${(index % COLOURS) + 1}`} aria-hidden="true"></span>
        <span>${line.label}</span><b>${shown(line, index)}</b></button></li>`)}</ul>
  </section>`;
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
