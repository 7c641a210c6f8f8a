// What charts look back to: one range of time for the page, and one for each chart that has its own.

import { withQuery } from "./api.js";
import { html } from "./html.js";
import { stored, useStore } from "./store.js";

/** What can be looked back to: name, title, seconds, seconds between two samples. */
export const RANGES = [
  ["minute", "Last minute", 60, 5],
  ["ten-minutes", "Last ten minutes", 600, 5],
  ["hour", "Last hour", 3600, 60],
  ["eight-hours", "Last eight hours", 28_800, 600],
  ["day", "Last day", 86_400, 1800],
];

const ofPage = stored("leveret.range", "ten-minutes");
/** The ranges of charts that differ from their page, by the name of the chart. */
const ofCharts = stored("leveret.ranges", {});

/** Things other than vhosts and the node have samples of an hour only. */
const rangesOf = (isShort) => (isShort ? RANGES.slice(0, 3) : RANGES);

const Picker = ({ ranges, range, label, test, onChoose }) => html`<label class="picker"><span class="sr-only">${label}</span>
  <select data-test=${test} value=${range[0]} onInput=${(event) => onChoose(event.target.value)}>
    ${ranges.map(([key, title]) => html`<option key=${key} value=${key} selected=${key === range[0]}>${title}</option>`)}</select></label>`;

/** What the charts of a page look back to: `[range, picker]`. A choice there is one for all charts. */
export function useRange({ isShort = false } = {}) {
  const name = useStore(ofPage);
  const ranges = rangesOf(isShort);
  const range = ranges.find(([key]) => key === name) ?? ranges[1];
  const choose = (key) => {
    ofPage.set(key);
    ofCharts.set({});
  };
  return [range, html`<${Picker} ranges=${ranges} range=${range} label="All charts show" test="range" onChoose=${choose} />`];
}

/** What one chart looks back to: that of its page, until somebody chooses another. */
export function useOwnRange(name, title, range, isShort) {
  const ranges = rangesOf(isShort);
  const chosen = useStore(ofCharts)[name];
  const own = ranges.find(([key]) => key === chosen) ?? range;
  const choose = (key) => ofCharts.set((all) => ({ ...all, [name]: key === range[0] ? undefined : key }));
  return [own, html`<${Picker} ranges=${ranges} range=${own} label=${`${title} shows`} test=${`range-of-${name}`} onChoose=${choose} />`];
}

/** A resource with samples of a range: of which kinds says `kinds` (lengths, msg_rates, data_rates, node_stats). */
export function withRange(url, [, , age, step], kinds = ["lengths", "msg_rates"]) {
  return withQuery(url, Object.fromEntries(kinds.flatMap((kind) => [[`${kind}_age`, age], [`${kind}_incr`, step]])));
}
