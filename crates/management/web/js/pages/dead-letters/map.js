// The dead-letter map: the routes of dead letters, how many take them, and the warnings.

import { path, withQuery } from "../../api.js";
import { Card, Loaded, Page } from "../../components.js";
import { count, number } from "../../format.js";
import { html, useEffect, useMemo, useRef, useState } from "../../html.js";
import { Warnings, about } from "../../parts/warnings.js";
import { usePolled } from "../../poll.js";
import { place, setQuery } from "../../router.js";
import { chosenVhost } from "../../session.js";
import { useStore } from "../../store.js";
import { graphOf } from "./graph.js";
import { Edges } from "./edges.js";
import { Parts } from "./parts.js";
import { Picture } from "./picture.js";

const TYPING_MS = 250;
const PAGE_SIZE = 500;
/** A picture of more takes a second to draw, and longer to read: only if the user asks for it. */
const DRAWN_MAX = 200;

export default function DeadLetterMap() {
  const vhost = useStore(chosenVhost);
  const { query } = useStore(place);
  const name = query.get("name") ?? "";
  const isFaulty = query.get("faults") === "1";
  const polled = usePolled(withQuery(vhost === "" ? path("dead-letter-map") : path("dead-letter-map", vhost), { name, page: query.get("page") ?? 1, page_size: PAGE_SIZE }));
  const view = query.get("view") ?? (polled.data?.edges.length > DRAWN_MAX ? "table" : "picture");
  return html`<${Page} title="Dead letters" test="dead-letters">
    <${Parts} current="map" />
    <div class="toolbar">
      <${NameFilter} value=${name} />
      <label class="check"><input type="checkbox" checked=${isFaulty} data-test="only-faults"
        onInput=${(event) => setQuery({ faults: event.target.checked ? 1 : null })} /><span>Only with warnings</span></label>
      <span class="gap"></span>
      <div class="segments" role="group" aria-label="Show the map as">${[["picture", "Picture"], ["table", "Table"]].map(([key, title]) => html`
        <button type="button" key=${key} aria-pressed=${view === key} onClick=${() => setQuery({ view: key })} data-test=${`view-${key}`}>${title}</button>`)}</div>
    </div>
    <${Loaded} polled=${polled}>${(map) => html`<${Shown} map=${map} view=${view} isFaulty=${isFaulty} />`}<//>
  <//>`;
}

/** All of this page of the map, or only the part with warnings. */
function selected(map, isFaulty) {
  if (!isFaulty) return map;
  const key = (vhost, queue) => JSON.stringify([vhost, queue]);
  const serious = map.warnings.filter((warning) => warning.severity !== "info");
  const faulty = new Set(serious.flatMap((warning) => [about(warning), ...(warning.queues ?? [])].map((queue) => key(warning.vhost, queue))));
  return { ...map, edges: map.edges.filter((edge) => faulty.has(key(edge.vhost, edge.from_queue)) || edge.to_queues.some((to) => faulty.has(key(edge.vhost, to)))) };
}

function Shown({ map, view, isFaulty }) {
  const shown = useMemo(() => selected(map, isFaulty), [map, isFaulty]);
  const graph = useMemo(() => graphOf(shown), [shown]);
  if (map.edges.length === 0 && map.warnings.length === 0) {
    return html`<p class="empty" data-test="none">No queue has a dead-letter exchange: messages that die are dropped.</p>`;
  }
  return html`
    ${map.warnings.length > 0 && html`<${Card} test="map-warnings" title=${count(map.total_warnings ?? map.warnings.length, "warning")}><${Warnings} warnings=${map.warnings} max=${6} /><//>`}
    ${view === "picture" && html`<p class="muted" data-test="edge-count">${shown.edges.length === map.total_edges
      ? count(map.total_edges, "dead-letter route") : `${number(shown.edges.length)} of ${count(map.total_edges, "dead-letter route")}`}
      ${map.whole === false && "; the map does not cover all queues"}</p>`}
    ${shown.edges.length === 0 ? html`<p class="empty">No match for the filter.</p>`
      : view === "picture" ? html`<${Picture} graph=${graph} /><${Legend} />` : html`<${Edges} edges=${shown.edges} />`}
    <${Pages} map=${map} />`;
}

const Legend = () => html`<ul class="map-legend muted">
  <li><span class="legend-queue"></span>queue</li><li><span class="legend-queue is-dlq"></span>dead-letter queue</li>
  <li><svg width="26" height="16" aria-hidden="true"><path class="legend-exchange" d="M1,8L6,1H20L25,8L20,15H6z" /></svg>exchange</li>
  <li><svg width="34" height="10" aria-hidden="true"><path class="legend-line" d="M0,5H34" /></svg>dead letters go there</li>
  <li><svg width="34" height="10" aria-hidden="true"><path class="legend-line is-uncertain" d="M0,5H34" /></svg>depends on the routing key of the message</li></ul>`;

function Pages({ map }) {
  const pages = map.page_count ?? 1;
  if (pages <= 1) return null;
  const go = (page) => setQuery({ page: page > 1 ? page : null });
  return html`<nav class="pager" aria-label="Pages"><button type="button" disabled=${map.page <= 1} onClick=${() => go(map.page - 1)}>Previous</button>
    <span>Page ${number(map.page)} of ${number(pages)}</span>
    <button type="button" disabled=${map.page >= pages} onClick=${() => go(map.page + 1)}>Next</button></nav>`;
}

function NameFilter({ value }) {
  const [text, setText] = useState(value);
  const timer = useRef(0);
  useEffect(() => setText(value), [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const type = (event) => {
    const { value: next } = event.target;
    setText(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setQuery({ name: next, page: null }), TYPING_MS);
  };
  return html`<div class="filter" role="search"><input type="search" data-filter data-test="filter" value=${text} placeholder="Filter by name"
    aria-label="Filter by name of a queue or exchange" spellcheck=${false} autocomplete="off" onInput=${type} /></div>`;
}
