// The dead-letter map as a table: for phones, for screen readers, and to sort.

import { Badge, ExchangeLink, QueueLink } from "../../components.js";
import { number } from "../../format.js";
import { html } from "../../html.js";
import { NO_ROUTE } from "../../parts/empty.js";
import { Source } from "../../parts/source.js";
import { sign } from "../../parts/warnings.js";
import { PagedTable } from "../../table.js";
import { expiryOf } from "./delays.js";
import { deathsOf } from "./graph.js";

/** The source of the setting: the queue's arguments, or a policy. */
function GivenBy({ edge }) {
  const { source, name } = edge.source["dead-letter-exchange"] ?? {};
  return source && html`<${Source} vhost=${edge.vhost} source=${source} name=${name} />`;
}

const Targets = ({ edge }) => (edge.to_queues.length === 0
  ? edge.anywhere ? html`<span class="muted">the queue that the key names</span>` : html`<${Badge} kind="danger">\u2716 no queue<//>`
  : edge.to_queues.map((name, index) => html`<span key=${name}>${index > 0 && ", "}<${QueueLink} vhost=${edge.vhost} name=${name} /></span>`).concat(edge.to_queues_total > edge.to_queues.length ? ` and ${number(edge.to_queues_total - edge.to_queues.length)} more` : []));

const Sign = ({ severity }) => severity && html`<span class=${`warning-line is-${severity}`} title=${severity}><span class="warning-sign">${sign(severity)}</span></span>`;

const COLUMNS = [
  { key: "from", title: "From queue", sort: "from_queue", render: (edge) => html`<${QueueLink} vhost=${edge.vhost} name=${edge.from_queue} />` },
  { key: "severity", title: "\u26a0", name: "Warnings", width: "2rem", sort: "severity", render: (edge) => html`<${Sign} severity=${edge.severity} />` },
  { key: "exchange", title: "Exchange", width: "3rem", max: "12rem", sort: "exchange", render: (edge) => html`<${ExchangeLink} vhost=${edge.vhost} name=${edge.exchange} />` },
  { key: "key", title: "Routing key", width: "3rem", max: "12rem", sort: "routing_key", render: (edge) => (edge.routing_key === null ? html`<span class="muted">unchanged</span>` : edge.routing_key) },
  { key: "to", title: "To queues", phone: 1, sort: "to_queues", render: (edge) => html`<${Targets} edge=${edge} />` },
  { key: "certain", title: "Which go there", width: "3rem", sort: "certain", render: (edge) => (edge.certain ? "all" : html`<span class="muted">depends on the key</span>`) },
  { key: "source", title: "DLX set by", width: "3rem", max: "12rem", sort: "source.dead-letter-exchange.name", render: (edge) => html`<${GivenBy} edge=${edge} />` },
  { key: "after", title: "Expires", width: "3rem", sort: "ttl_min_ms", render: (edge) => expiryOf(edge) ?? "\u2013" },
  { key: "deaths", title: "Deaths", width: "3rem", phone: 2, align: "right", sort: "rate", render: (edge) => deathsOf(edge).map((one) => one.text).join(", ") || "\u2013" },
  { key: "strategy", title: "Strategy", width: "6rem", isOptional: true, sort: "strategy", render: (edge) => edge.strategy },
  { key: "vhost", title: "Vhost", width: "5rem", isOptional: true, sort: "vhost", render: (edge) => edge.vhost },
];

/** The edges of the map at `url`, as rows; the filter is the page's. */
export const Edges = ({ url, hasWarning }) => html`<${PagedTable} id="edges" url=${url} query=${{ has_warning: hasWarning }} columns=${COLUMNS} noun="dead-letter route"
  itemsOf=${(map) => map.edges} hasFilter=${false} rowKey=${(edge) => JSON.stringify([edge.vhost, edge.from_queue, edge.exchange, edge.routing_key])} empty=${NO_ROUTE} />`;
