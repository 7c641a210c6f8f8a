// One node: memory, disk, file descriptors, churn.

import { path, withQuery } from "../api.js";
import { Chart, lastingLine, levelLine, rateLine, useRange, withRange } from "../chart.js";
import { Badge, Card, Facts, Loaded, Meter, Page, State } from "../components.js";
import { bytes, compact, count, duration, number } from "../format.js";
import { html } from "../html.js";
import { AlarmDot } from "../parts/alarm.js";
import { DrainButton } from "../parts/leads.js";
import { ForgetButton } from "../parts/membership.js";
import { DiskOperations, WebContexts } from "../parts/node-parts.js";
import { LinksTable, usePlacements } from "../parts/nodes-table.js";
import { IfItStops, useQuorums } from "../parts/stops.js";
import { ResetStatistics } from "../parts/reset-statistics.js";
import { usePolled } from "../poll.js";
import { go, href } from "../router.js";
import { isAdministrator } from "../session.js";
import { ListTable } from "../table.js";
import { oneDecimal } from "./overview.js";

const asBytes = Object.assign((value) => bytes(value), { isBytes: true });

/** Titles for RabbitMQ's names of memory parts. */
const PARTS = {
  binary: "Messages in memory",
  code: "Code of the program",
  connection_writers: "Data for clients, not sent yet",
  mgmt_db: "Statistics: samples for rates and charts",
  other_system: "Other",
};

const MEMORY = [
  { key: "part", title: "Part", sort: "title", render: (part) => html`<span title=${part.name}>${part.title}</span>` },
  { key: "bytes", title: "Bytes", sort: "bytes", align: "right", width: "9rem", render: (part) => bytes(part.bytes) },
  { key: "share", title: "Share", width: "14rem", render: (part) => html`<${Meter} label=${part.title} used=${part.bytes} total=${part.total} />` },
];

function memoryParts(memory = {}) {
  const { total, strategy, ...parts } = memory;
  const all = Object.entries(parts).filter(([, value]) => typeof value === "number" && value > 0);
  return all.map(([name, value]) => ({ name, title: PARTS[name] ?? name, bytes: value, total: total?.rss })).sort((a, b) => b.bytes - a.bytes);
}

const memory = (node) => [lastingLine("In use", node.mem_used_details, node.mem_used)];
const memoryLimits = (node) => [{ label: "Alarm above", value: node.mem_limit, hint: "The memory watermark: publishers are blocked above it" }];
const disk = (node) => [lastingLine("Free", node.disk_free_details, node.disk_free)];
const diskLimits = (node) => [{ label: "Alarm below", value: node.disk_free_limit, hint: "The disk limit: publishers are blocked below it" }];
const handles = (node) => [
  lastingLine("File descriptors", node.fd_used_details, node.fd_used),
  levelLine("Connections", node.sockets_used_details, node.sockets_used),
];
const handleLimits = (node) => [{ label: "Limit", value: node.fd_total, hint: "File descriptors that the operating system allows; each connection needs one" }];
const churn = (node) => [
  rateLine("Connections opened", node.connection_created_details), rateLine("Connections closed", node.connection_closed_details),
  rateLine("Channels opened", node.channel_created_details), rateLine("Channels closed", node.channel_closed_details),
  rateLine("Queues declared", node.queue_declared_details), rateLine("Queues created", node.queue_created_details),
  rateLine("Queues deleted", node.queue_deleted_details),
];

function Charts({ node, range }) {
  const source = { url: path("nodes", node.name), kinds: ["node_stats", "msg_rates"] };
  return html`<div class="cards is-pairs">
    <${Chart} title="Memory" lines=${memory} limits=${memoryLimits} data=${node} source=${source} range=${range} format=${asBytes} test="chart-memory" />
    <${Chart} title="Free space on the disk" lines=${disk} limits=${diskLimits} data=${node} source=${source} range=${range} format=${asBytes} test="chart-disk" />
    <${Chart} title="Open files and connections" lines=${handles} limits=${handleLimits} data=${node} source=${source} range=${range} format=${compact} test="chart-files" />
    <${Chart} title="Churn per second" lines=${churn} data=${node} source=${source} range=${range} format=${oneDecimal} test="chart-churn" />
  </div>`;
}

/** True for another node of the cluster, which is known by the facts that it tells. */
const isOther = (node) => node.db_dir === undefined;

function OtherNode({ node }) {
  return html`<div class="cards"><${Card} title="Details"><${Facts} items=${[
    ["State", node.running ? "running" : ["unreachable from this node", node.link_problem].filter(Boolean).join(": ")],
    ["Uptime", duration(node.uptime)],
    ["Process id", node.os_pid],
    ["Processors", number(node.processors)],
    ["Memory in use", bytes(node.mem_used)],
    ["Memory alarm above", bytes(node.mem_limit)],
    ["Free space on the disk", bytes(node.disk_free)],
    ["Disk alarm below", bytes(node.disk_free_limit)],
    ["File descriptors", `${number(node.fd_used)} of ${number(node.fd_total)}`],
  ]} /><//></div>`;
}

/** What ends the maintenance of a node. */
const Drained = ({ node }) => html`<p class="banner warning" role="status" data-test="drained">
  This node is drained: it accepts no AMQP client, and leads only what no other node can. <code>rabbitmq-upgrade revive</code> on ${node.name}${isAdministrator() && ", or Revive\u2026 above,"} ends that.</p>`;

export default function Node({ params: { name } }) {
  const [range, picker] = useRange();
  const polled = usePolled(withQuery(withRange(path("nodes", name), range, ["node_stats", "msg_rates"]), { memory: true }));
  const all = usePolled(`${path("nodes")}?disable_stats=true`);
  const isClustered = all.data?.length > 1;
  const { data: vhosts } = usePlacements(isClustered);
  const quorums = useQuorums(all.data, vhosts);
  const node = polled.data;
  const runningOthers = all.data?.filter((one) => one.running && one.name !== name).length;
  const badges = html`<${AlarmDot} />${node?.being_drained && html`<${State} kind="warning">drained<//>`}`;
  const ofCluster = isClustered && node && isAdministrator() && html`
    <${DrainButton} node=${{ ...node, runningOthers }} onDone=${polled.refresh} />
    <${ForgetButton} node=${{ ...node, runningOthers }} onDone=${() => go(href("nodes"))} />`;
  return html`<${Page} title=${name} crumbs=${[["Nodes", href("nodes")]]} badges=${badges} test="node" polled=${polled} gone="This node does not exist."
      actions=${html`${picker}${ofCluster}<${ResetStatistics} node=${name} onDone=${polled.refresh} />`}>
    <${Loaded} polled=${polled}>${() => isOther(node) ? html`<${OtherNode} node=${node} />` : html`
      ${node.being_drained && html`<${Drained} node=${node} />`}
      ${quorums && html`<${IfItStops} key=${name} node=${node} quorums=${quorums} />`}
      <${Charts} node=${node} range=${range} />
      ${isClustered && html`<${Card} title="Links" test="links"><${LinksTable} nodes=${[node]} /><//>`}
      <div class="cards">
        <${Card} title="Memory by part"><${ListTable} id="memory" rows=${memoryParts(node.memory)} columns=${MEMORY} rowKey=${(part) => part.name} noun="part" /><//>
        <${Card} title="Details"><${Facts} items=${[
          ["Uptime", duration(node.uptime)],
          ["Leads", vhosts && html`<a href=${href("replicas")} data-test="leads">${count(vhosts.filter(({ leader }) => leader === name).length, "virtual host")}</a>`],
          ["Clients in led virtual hosts", isClustered ? number(node.sockets_used) : undefined],
          ["Clients relayed", isClustered && node.relayed_connections !== undefined ? html`<span data-test="relayed" title="They are connected to this node, and another one leads their virtual host">${number(node.relayed_connections)}</span>` : undefined],
          ["Process id", node.os_pid],
          ["Processors", number(node.processors)],
          ["Memory alarm above", node.mem_limit === undefined ? "never" : bytes(node.mem_limit)],
          ["Disk alarm below", bytes(node.disk_free_limit)],
          ["File descriptors", `${number(node.fd_used)} of ${number(node.fd_total)}`],
          ["Confirms wait for", node.durability === "fsync" ? "the disk (fsync)" : "the operating system"],
          ["Data directory", html`<code>${node.db_dir}</code>`],
          ["Configuration files", node.config_files?.join(", ")],
          ["Log files", node.log_files?.join(", ")],
          ["Authentication mechanisms", node.auth_mechanisms?.map((one) => html`<${Badge} key=${one.name} title=${one.description}>${one.name}<//> `)],
          ["Exchange types", node.exchange_types?.map((one) => html`<${Badge} key=${one.name} title=${one.description}>${one.name}<//> `)],
        ]} /><//>
        <${DiskOperations} node=${node} />
        <${WebContexts} contexts=${node.contexts} />
      </div>`}<//>
  <//>`;
}
