// The dead-letter map as a table: for phones, for screen readers, and to sort.

import { Badge, ExchangeLink, QueueLink } from "../../components.js";
import { number } from "../../format.js";
import { html } from "../../html.js";
import { Source } from "../../parts/source.js";
import { ListTable } from "../../table.js";
import { deathsOf } from "./graph.js";

const sum = (table = {}) => Object.values(table).reduce((total, value) => total + value, 0);

/** The source of the setting: the queue's arguments, or a policy. */
function GivenBy({ edge }) {
  const { source, name } = edge.source["dead-letter-exchange"] ?? {};
  return source && html`<${Source} vhost=${edge.vhost} source=${source} name=${name} />`;
}

const Targets = ({ edge }) => (edge.to_queues.length === 0
  ? edge.anywhere ? html`<span class="muted">the queue that the key names</span>` : html`<${Badge} kind="danger">\u2716 no queue<//>`
  : edge.to_queues.map((name, index) => html`<span key=${name}>${index > 0 && ", "}<${QueueLink} vhost=${edge.vhost} name=${name} /></span>`).concat(edge.to_queues_total > edge.to_queues.length ? ` and ${number(edge.to_queues_total - edge.to_queues.length)} more` : []));

const COLUMNS = [
  { key: "from", title: "From queue", sort: "from_queue", render: (edge) => html`<${QueueLink} vhost=${edge.vhost} name=${edge.from_queue} />` },
  { key: "exchange", title: "Exchange", sort: "exchange", render: (edge) => html`<${ExchangeLink} vhost=${edge.vhost} name=${edge.exchange} />` },
  { key: "key", title: "Routing key", width: "9rem", sort: "routing_key", render: (edge) => (edge.routing_key === null ? html`<span class="muted">unchanged</span>` : edge.routing_key) },
  { key: "to", title: "To queues", sort: (edge) => edge.to_queues.join(), render: (edge) => html`<${Targets} edge=${edge} />` },
  { key: "certain", title: "Certain", width: "7.5rem", sort: (edge) => (edge.certain ? 1 : 0), render: (edge) => (edge.certain ? "yes" : html`<span class="muted">depends on the key</span>`) },
  { key: "source", title: "Set by", width: "9rem", sort: (edge) => edge.source["dead-letter-exchange"]?.source, render: (edge) => html`<${GivenBy} edge=${edge} />` },
  { key: "deaths", title: "Deaths", width: "12rem", align: "right", sort: (edge) => sum(edge.rate_by_reason) * 1e9 + sum(edge.count_by_reason), render: (edge) => deathsOf(edge).map((one) => one.text).join(", ") || "\u2013" },
  { key: "strategy", title: "Strategy", width: "8rem", isOptional: true, sort: "strategy", render: (edge) => edge.strategy },
  { key: "vhost", title: "Vhost", width: "7rem", isOptional: true, sort: "vhost", render: (edge) => edge.vhost },
];

/** The edges of the map, as rows. */
export const Edges = ({ edges }) => html`<${ListTable} id="edges" rows=${edges} columns=${COLUMNS} noun="dead-letter route"
  rowKey=${(edge) => JSON.stringify([edge.vhost, edge.from_queue, edge.exchange, edge.routing_key])} empty="No queue has a dead-letter exchange." />`;
