// The dead-letter map: the routes of dead letters, how many take them, and the warnings.

import { path, withQuery } from "../../api.js";
import { Loaded, Page } from "../../components.js";
import { count, number } from "../../format.js";
import { html, useMemo } from "../../html.js";
import { Filter } from "../../list/toolbar.js";
import { NO_ROUTE } from "../../parts/empty.js";
import { WarningGroups } from "../../parts/warning-groups.js";
import { usePolled } from "../../poll.js";
import { place, setQuery } from "../../router.js";
import { chosenVhost } from "../../session.js";
import { useStore } from "../../store.js";
import { Delays, shownDelays } from "./delays.js";
import { graphOf } from "./graph.js";
import { Edges } from "./edges.js";
import { Parts } from "./parts.js";
import { Picture } from "./picture.js";

/** A picture has so many lines; equal routes of many queues are one. */
const DRAWN_MAX = 200;

export default function DeadLetterMap() {
  const vhost = useStore(chosenVhost);
  const { query } = useStore(place);
  const name = query.get("name") ?? "";
  const isRegex = query.get("regex") === "1";
  const hasWarning = query.get("faults") === "1";
  const url = vhost === "" ? path("dead-letter-map") : path("dead-letter-map", vhost);
  const polled = usePolled(withQuery(url, { name, use_regex: isRegex, has_warning: hasWarning, group: true, page: 1, page_size: DRAWN_MAX }));
  const view = query.get("view") ?? (polled.data?.filtered_count > DRAWN_MAX ? "table" : "picture");
  const change = ({ name: typed = name, isRegex: regex = isRegex }) => setQuery({ name: typed, regex: regex ? 1 : null, page: null });
  return html`<${Page} title="Dead letters" test="dead-letters">
    <${Parts} current="map" />
    <div class="toolbar">
      <${Filter} value=${name} isRegex=${isRegex} onChange=${change} label="Filter by queue or exchange" />
      <label class="check"><input type="checkbox" checked=${hasWarning} data-test="only-faults"
        onInput=${(event) => setQuery({ faults: event.target.checked ? 1 : null, page: null })} /><span>Only with warnings</span></label>
      <span class="gap"></span>
      <div class="segments" role="group" aria-label="Show the map as">${[["picture", "Picture"], ["table", "Table"]].map(([key, title]) => html`
        <button type="button" key=${key} aria-pressed=${view === key} onClick=${() => setQuery({ view: key })} data-test=${`view-${key}`}>${title}</button>`)}</div>
    </div>
    <${Loaded} polled=${polled}>${(map) => html`<${Shown} map=${map} view=${view} url=${url} hasWarning=${hasWarning} />`}<//>
  <//>`;
}

/** What the picture has, and what it has not. */
function drawn(map, hasWarning) {
  const edges = map.edges.reduce((sum, edge) => sum + edge.from_queues_total, 0);
  const isAll = edges === map.filtered_edges;
  const amount = isAll ? count(edges, "dead-letter route") : `${number(edges)} of ${count(map.filtered_edges, "dead-letter route")} are drawn, those with warnings first. The table has all of them; a filter draws others`;
  const parts = [
    amount,
    map.edges.length < edges && `equal routes of several queues are one line`,
    map.filtered_edges < map.total_edges && `${number(map.total_edges - map.filtered_edges)} do not match the filter`,
    shownDelays(map),
    map.filtered_delays < map.total_delays && !hasWarning && `${count(map.total_delays - map.filtered_delays, "delay")} ${map.total_delays - map.filtered_delays === 1 ? "does" : "do"} not match the filter`,
    hasWarning && map.total_delays > 0 && "delays are not shown, because no warning is about them",
    map.whole === false && "the map does not cover all queues",
  ];
  return parts.filter(Boolean).join("; ");
}

function Shown({ map, view, url, hasWarning }) {
  const graph = useMemo(() => graphOf(map), [map]);
  if (map.total_edges === 0 && map.total_delays === 0 && map.warnings.length === 0) {
    return html`<p class="empty" data-test="none">${NO_ROUTE} No message waits for its time.</p>`;
  }
  return html`
    <${WarningGroups} map=${map} />
    ${view === "table" ? html`<${Edges} url=${url} hasWarning=${hasWarning} /><${Delays} map=${map} />` : html`
      <p class="muted" data-test="edge-count">${drawn(map, hasWarning)}.</p>
      ${map.edges.length + map.delays.length === 0 ? html`<p class="empty">No match for the filter.</p>` : html`<${Picture} graph=${graph} /><${Legend} />`}`}`;
}

const Legend = () => html`<ul class="map-legend muted">
  <li><span class="legend-queue"></span>queue</li><li><span class="legend-queue is-dlq"></span>dead-letter queue</li>
  <li><svg width="26" height="16" aria-hidden="true"><path class="legend-exchange" d="M1,8L6,1H20L25,8L20,15H6z" /></svg>exchange</li>
  <li><span class="legend-queue is-group"></span>several queues with the same route</li>
  <li><svg width="34" height="10" aria-hidden="true"><path class="legend-line" d="M0,5H34" /></svg>dead letters go there</li>
  <li><svg width="34" height="10" aria-hidden="true"><path class="legend-line is-uncertain" d="M0,5H34" /></svg>depends on the routing key of the message</li>
  <li><svg width="26" height="16" aria-hidden="true"><path class="legend-line" d="M4,15C4,0 22,0 22,15" /></svg>messages wait in the queue: delayed retry, or their delivery time</li></ul>`;
