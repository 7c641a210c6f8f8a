// The state of the broker at a glance.

import { path } from "../api.js";
import { Chart, levelLine, rateLine, useRange, withRange } from "../chart.js";
import { Badge, Card, Loaded, Page, Stat } from "../components.js";
import { compact, number, rateOf } from "../format.js";
import { html } from "../html.js";
import { DEAD_LETTERED, DROPPED, LOST, REFUSED } from "../parts/ends.js";
import { OverviewFindings } from "../parts/findings.js";
import { deliveryLines } from "../parts/flow.js";
import { NODE_COLUMN, WebContexts, forNodes } from "../parts/node-parts.js";
import { NodesTable, useClusterNodes } from "../parts/nodes-table.js";
import { ResetStatistics } from "../parts/reset-statistics.js";
import { usePolled } from "../poll.js";
import { href, hrefWith } from "../router.js";
import { Stats } from "../stats.js";
import { isMonitor } from "../session.js";
import { ListTable } from "../table.js";

const LISTENERS = [
  { key: "protocol", title: "Protocol", sort: "protocol", width: "5rem", render: (one) => one.protocol },
  NODE_COLUMN,
  { key: "address", title: "Address", sort: "ip_address", width: "5rem", render: (one) => one.ip_address },
  { key: "port", title: "Port", sort: "port", align: "right", width: "4rem", render: (one) => one.port },
  { key: "tls", title: "TLS", sort: "tls", width: "3rem", render: (one) => (one.tls ? "yes" : "no") },
];

const lengths = (data, queued = data.queue_totals ?? data) => [
  levelLine("Ready", queued.messages_ready_details, queued.messages_ready, "Waiting for a consumer"),
  levelLine("Unacknowledged", queued.messages_unacknowledged_details, queued.messages_unacknowledged, "Delivered, and not acknowledged yet"),
  levelLine("Total", queued.messages_details, queued.messages),
];
const traffic = ({ message_stats: stats = {} }) => [
  rateLine("Publish", stats.publish_details),
  rateLine("Deliver", stats.deliver_get_details, "Delivered to consumers, or fetched with basic.get"),
  rateLine("Acknowledge", stats.ack_details),
  rateLine("Confirm", stats.confirm_details, "Confirmed to publishers"),
  rateLine(REFUSED, stats.refused_details, "Refused by full queues"),
  rateLine("Returned (mandatory)", stats.return_unroutable_details, "Mandatory messages that were routed to no queue, and returned to publishers"),
  rateLine("Dropped (unroutable)", stats.drop_unroutable_details, "Messages that were routed to no queue, and dropped"),
];
const deliveries = ({ message_stats: stats = {} }) => deliveryLines(stats);
const ends = ({ message_stats: stats = {} }) => [
  rateLine("Expired", stats.expired_details),
  rateLine(DEAD_LETTERED, stats.dead_lettered_details, "Died, and moved to another queue"),
  rateLine(DROPPED, stats.dropped_without_dlx_details, "Died in a queue without a dead-letter exchange"),
  rateLine(LOST, stats.dead_letters_lost_details, "Died, and no queue accepted the dead letter"),
  rateLine("Redriven", stats.redriven_details, "Taken from a queue by a redrive, and sent to others"),
];

/** Charts of an overview or a vhost, which is at `url`: what is queued, and what happens. */
export function MessageCharts({ data, url, range }) {
  const source = { url };
  return html`<div class="cards">
    <${Chart} title="Queued messages" lines=${lengths} data=${data} source=${source} range=${range} format=${compact} test="chart-lengths" />
    <${Chart} title="Message rates" lines=${traffic} data=${data} source=${source} range=${range} format=${oneDecimal} test="chart-rates" />
    <${Chart} title="Deliveries" lines=${deliveries} data=${data} source=${source} range=${range} format=${oneDecimal} test="chart-deliveries" />
    <${Chart} title="Deaths per second" lines=${ends} data=${data} source=${source} range=${range} format=${oneDecimal} test="chart-deaths" />
  </div>`;
}

/** A rate under a title that gives the unit. */
export const oneDecimal = (value) => (typeof value === "number" && value > 0 && value < 10 ? value.toFixed(1) : number(value));

const CHURN = [
  ["connection_created", "Connections opened"], ["connection_closed", "Connections closed"],
  ["channel_created", "Channels opened"], ["channel_closed", "Channels closed"],
  ["queue_declared", "Queues declared"], ["queue_created", "Queues created"], ["queue_deleted", "Queues deleted"],
];

const churnLines = ({ churn_rates: churn = {} }) => CHURN.map(([key, label]) => rateLine(label, churn[`${key}_details`]));

export default function Overview() {
  const [range, picker] = useRange();
  const polled = usePolled(withRange(path("overview"), range));
  const nodes = usePolled(isMonitor() ? path("nodes") : null);
  const clusterNodes = useClusterNodes(nodes);
  return html`<${Page} title="Overview" actions=${html`${picker}<${ResetStatistics} onDone=${polled.refresh} />`} test="overview">
    <${Loaded} polled=${polled}>${(all) => {
      const { object_totals: objects, queue_totals: queued = {}, message_stats: stats = {} } = all;
      return html`
        <${OverviewFindings} />
        <${Stats}>
          <${Stat} label="Messages" value=${compact(queued.messages)} hint=${number(queued.messages)} href=${hrefWith({ sort: "total", reverse: 1 }, "queues")} test="messages" />
          <${Stat} label="Ready" value=${compact(queued.messages_ready)} hint=${number(queued.messages_ready)} />
          <${Stat} label="Unacked" value=${compact(queued.messages_unacknowledged)} hint=${number(queued.messages_unacknowledged)} />
          <${Stat} label="Published" value=${rateOf(stats.publish_details)} />
          <${Stat} label=${REFUSED} value=${rateOf(stats.refused_details)} hint="Messages refused by full queues per second" href=${hrefWith({ sort: "refused", reverse: 1 }, "queues")} test="refused" />
          <${Stat} label=${DEAD_LETTERED} value=${rateOf(stats.dead_lettered_details)} href=${href("dead-letters")} />
          <${Stat} label=${LOST} value=${rateOf(stats.dead_letters_lost_details)} hint="Dead letters per second that no queue accepted" href=${href("dead-letters")} test="lost" />
          <${Stat} label="Queues" value=${compact(objects.queues)} href=${href("queues")} />
          <${Stat} label="Exchanges" value=${compact(objects.exchanges)} href=${href("exchanges")} />
          <${Stat} label="Connections" value=${compact(objects.connections)} href=${href("connections")} />
          <${Stat} label="Channels" value=${compact(objects.channels)} href=${href("channels")} />
          <${Stat} label="Consumers" value=${compact(objects.consumers)} />
        <//>
        <${MessageCharts} data=${all} url=${path("overview")} range=${range} />
        ${nodes.data && html`<${Card} title="Nodes"><${NodesTable} id="overview-nodes" polled=${nodes} nodes=${clusterNodes} /><//>`}
        <div class="cards">
          <${Chart} title="Churn per second" lines=${churnLines} data=${all} source=${{ url: path("overview") }} range=${range} format=${oneDecimal} test="chart-churn" />
          ${all.listeners && html`<${Card} title="Listeners"><${ListTable} id="listeners" rows=${all.listeners} columns=${forNodes(LISTENERS, all.listeners)} rowKey=${(one) => `${one.node} ${one.ip_address}:${one.port}`} noun="listener" /><//>`}
          ${all.contexts?.length > 0 && html`<${WebContexts} contexts=${all.contexts} />`}
        </div>
        <p class="muted">Leveret ${all.leveret_version}. Clients see ${all.product_name} ${all.product_version}.
          ${" "}<${Badge} title="A confirm waits for the disk (fsync) or the operating system (os)">durability: ${all.durability}<//></p>`;
    }}<//><//>`;
}
