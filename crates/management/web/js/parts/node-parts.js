// Parts of the page of a node: what its HTTP listeners serve, and what it does with the disk.

import { Card, Facts } from "../components.js";
import { bytes, count, duration, number, rateOf } from "../format.js";
import { html } from "../html.js";
import { ListTable } from "../table.js";

/** The node that a thing belongs to. */
export const NODE_COLUMN = { key: "node", title: "Node", sort: "node", width: "6rem", render: ({ node }) => node };

/** The columns for things of several nodes, or of one: then it is not named. */
export const forNodes = (columns, things) => (new Set(things.map(({ node }) => node)).size > 1 ? columns : columns.filter((column) => column !== NODE_COLUMN));

const COLUMNS = [
  { key: "description", title: "Context", sort: "description", width: "6rem", render: (one) => html`<span class="wrap">${one.description}</span>` },
  NODE_COLUMN,
  { key: "address", title: "Address", sort: "ip", width: "5rem", render: (one) => one.ip },
  { key: "port", title: "Port", sort: "port", width: "4rem", align: "right", render: (one) => one.port },
  { key: "tls", title: "TLS", width: "3rem", render: (one) => (one.tls ? "yes" : "no") },
  { key: "path", title: "Path", width: "3rem", render: (one) => html`<code>${one.path}</code>` },
];

/** The contexts of the HTTP listeners: this page with the API, and metrics. */
export const WebContexts = ({ contexts = [] }) => html`<${Card} title="Web contexts" test="web-contexts">
  <${ListTable} id="web-contexts" rows=${contexts} columns=${forNodes(COLUMNS, contexts)} rowKey=${(one) => `${one.node}\n${one.description}\n${one.ip}\n${one.port}\n${one.path}`}
    noun="context" empty="No HTTP listeners." /><//>`;

const average = (us) => (us > 0 ? `, ${duration(us / 1000)} each` : "");

/** Reads, writes and syncs of the data directory since the start. */
export const DiskOperations = ({ node }) => html`<${Card} title="Disk operations" test="disk-operations"><${Facts} items=${[
  ["Reads", `${number(node.io_read_count)} (${rateOf(node.io_read_count_details)})${average(node.io_read_mean_us)}`],
  ["Bytes read", bytes(node.io_read_bytes)],
  ["Writes", `${number(node.io_write_count)} (${rateOf(node.io_write_count_details)})${average(node.io_write_mean_us)}`],
  ["Bytes written", bytes(node.io_write_bytes)],
  ["Syncs", `${number(node.io_sync_count)} (${rateOf(node.io_sync_count_details)})${average(node.io_sync_mean_us)}`],
]} />
  <p class="muted">${count(node.io_sync_count, "sync")} since the start: a confirm of a persistent message waits for one.</p><//>`;
