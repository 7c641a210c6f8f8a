// All connections, page by page.

import { path } from "../api.js";
import { Badge, ConnectionLink, Page, State, UserLink } from "../components.js";
import { DASH, byteRate, moment } from "../format.js";
import { html } from "../html.js";
import { numberColumn } from "../parts/columns.js";
import { useChosenVhost, useVhostColumns } from "../parts/vhosts.js";
import { PagedTable } from "../table.js";

/** How the state of a connection looks. */
export const connectionState = (state) => ({ running: "good", flow: "warning", blocking: "warning", blocked: "danger" })[state] ?? "";

/** Product and version of a client. */
export const clientOf = ({ client_properties: client = {} }) => [client.product, client.version].filter(Boolean).join(" ") || DASH;

const COLUMNS = [
  { key: "name", title: "Connection", sort: "name", render: (one) => html`<${ConnectionLink} name=${one.name} />` },
  { key: "given", title: "Client-provided name", sort: "user_provided_name", width: "11rem", render: (one) => html`<span title=${one.user_provided_name}>${one.user_provided_name ?? DASH}</span>` },
  { key: "user", title: "User", sort: "user", width: "7rem", render: (one) => html`<${UserLink} name=${one.user} />` },
  { key: "state", title: "State", sort: "state", width: "7rem", render: (one) => html`<${State} kind=${connectionState(one.state)}>${one.state}<//>` },
  { key: "tls", title: "TLS", sort: "ssl", width: "4.5rem", render: (one) => (one.ssl ? html`<${Badge} kind="good" title=${one.ssl_protocol}>TLS<//>` : DASH) },
  { key: "protocol", title: "Protocol", sort: "protocol", width: "8rem", isOptional: true, render: (one) => one.protocol },
  numberColumn("channels", "Channels", "channels", { width: "6rem" }),
  { key: "recv", title: "From client", sort: "recv_oct_details.rate", width: "7.5rem", align: "right", render: (one) => byteRate(one.recv_oct_details?.rate) },
  { key: "send", title: "To client", sort: "send_oct_details.rate", width: "7.5rem", align: "right", render: (one) => byteRate(one.send_oct_details?.rate) },
  { key: "client", title: "Client", sort: "client_properties.product", width: "10rem", isOptional: true, render: (one) => html`<span title=${clientOf(one)}>${clientOf(one)}</span>` },
  { key: "heartbeat", title: "Heartbeat", sort: "timeout", width: "6rem", align: "right", isOptional: true, render: (one) => (one.timeout ? `${one.timeout} s` : "none") },
  { key: "since", title: "Connected at", sort: "connected_at", width: "10rem", align: "right", isOptional: true, render: (one) => moment(one.connected_at) },
];

export default function Connections() {
  const vhost = useChosenVhost();
  const columns = useVhostColumns(COLUMNS);
  return html`<${Page} title="Connections" badges=${vhost && html`<${Badge} kind="accent">${vhost}<//>`} test="connections">
    <${PagedTable} id="connections" url=${vhost ? path("vhosts", vhost, "connections") : path("connections")} columns=${columns}
      rowKey=${(one) => one.name} noun="connection" defaultSort=${{ key: "name" }} empty="No connections." />
  <//>`;
}
