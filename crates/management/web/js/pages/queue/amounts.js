// Messages and bytes of a queue by state and place.

import { Card } from "../../components.js";
import { bytes, number } from "../../format.js";
import { html } from "../../html.js";
import { Table } from "../../table.js";

/** Names, endings of the API's fields, and what is counted. */
const PLACES = [
  ["Total", "", "All messages of the queue"],
  ["Ready", "_ready", "Waiting for a consumer"],
  ["Unacked", "_unacknowledged", "Delivered, and not acknowledged yet"],
  ["In memory", "_ram", "Held in memory"],
  ["Persistent", "_persistent", "Survive a restart"],
  ["On disk only", "_paged_out", "Ready messages that are not in memory"],
];

const COLUMNS = [
  { key: "place", title: "Messages", width: "8rem", render: ({ title, hint }) => html`<span title=${hint}>${title}</span>` },
  { key: "messages", title: "Number", align: "right", width: "6rem", render: ({ queue, suffix }) => number(queue[`messages${suffix}`]) },
  { key: "bytes", title: "Bytes", align: "right", width: "6rem", render: ({ queue, suffix }) => bytes(queue[`message_bytes${suffix}`]) },
];

/** The table. */
export const Amounts = ({ queue }) => html`<${Card} title="Messages by state and place" test="amounts">
  <${Table} columns=${COLUMNS} rowKey=${(row) => row.title} label="Messages by state and place"
    rows=${PLACES.map(([title, suffix, hint]) => ({ title, suffix, hint, queue }))} /><//>`;
