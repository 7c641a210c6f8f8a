// All connections, page by page.

import { path } from "../api.js";
import { isInCluster } from "../cluster.js";
import { Badge, ConnectionLink, Page, UserLink } from "../components.js";
import { DASH, byteRate, bytes, moment } from "../format.js";
import { html, useMemo } from "../html.js";
import { ConnectionState } from "../parts/alarm.js";
import { numberColumn } from "../parts/columns.js";
import { NO_CONNECTION } from "../parts/empty.js";
import { useChosenVhost, useVhostColumns } from "../parts/vhosts.js";
import { href } from "../router.js";
import { useStore } from "../store.js";
import { PagedTable } from "../table.js";

/** Product and version of a client. */
export const clientOf = ({ client_properties: client = {} }) => [client.product, client.version].filter(Boolean).join(" ") || DASH;

/** The name that people know: the client's own, or else the addresses. */
const Name = ({ of: one }) => html`<a href=${href("connections", one.name)} title=${one.name}>${one.user_provided_name ?? one.name}</a>`;

const OVERVIEW = "Overview";
const DETAILS = "Details";
const NETWORK = "Network";

const COLUMNS = [
  { key: "given", title: "Client-provided name", group: OVERVIEW, sort: "user_provided_name", hint: "The addresses, where the client has given no name", render: (one) => html`<${Name} of=${one} />` },
  { key: "name", title: "Address", group: OVERVIEW, sort: "name", width: "9rem", render: (one) => html`<${ConnectionLink} name=${one.name} />` },
  { key: "user", title: "User", group: OVERVIEW, sort: "user", width: "4rem", render: (one) => html`<${UserLink} name=${one.user} />` },
  { key: "state", title: "State", group: OVERVIEW, sort: "state", phone: 1, width: "3.6rem", render: (one) => html`<${ConnectionState} state=${one.state} />` },
  { key: "tls", title: "TLS", group: DETAILS, sort: "ssl", width: "3rem", render: (one) => (one.ssl ? html`<${Badge} kind="good" title=${one.ssl_protocol}>TLS<//>` : DASH) },
  { key: "protocol", title: "Protocol", group: DETAILS, sort: "protocol", width: "5rem", isOptional: true, render: (one) => one.protocol },
  numberColumn("channels", "Channels", "channels", { group: DETAILS, phone: 2 }),
  { key: "client", title: "Client", group: DETAILS, sort: "client_properties.product", width: "6rem", isOptional: true, render: (one) => clientOf(one) },
  { key: "mechanism", title: "Login", group: DETAILS, sort: "auth_mechanism", width: "4rem", isOptional: true, render: (one) => one.auth_mechanism },
  { key: "heartbeat", title: "Heartbeat", group: DETAILS, sort: "timeout", width: "4rem", align: "right", isOptional: true, render: (one) => (one.timeout ? `${one.timeout} s` : "none") },
  numberColumn("channel_max", "Channels up to", "channel_max", { group: DETAILS, isOptional: true }),
  { key: "frame_max", title: "Frames up to", group: DETAILS, sort: "frame_max", width: "5rem", align: "right", isOptional: true, render: (one) => bytes(one.frame_max) },
  { key: "since", title: "Connected at", group: DETAILS, sort: "connected_at", width: "5rem", align: "right", isOptional: true, render: (one) => moment(one.connected_at) },
  { key: "recv", title: "From client", group: NETWORK, sort: "recv_oct_details.rate", phone: 3, width: "6rem", align: "right", render: (one) => byteRate(one.recv_oct_details?.rate) },
  { key: "send", title: "To client", group: NETWORK, sort: "send_oct_details.rate", phone: 4, width: "6rem", align: "right", render: (one) => byteRate(one.send_oct_details?.rate) },
  { key: "recv_all", title: "Received in all", group: NETWORK, sort: "recv_oct", width: "6rem", align: "right", isOptional: true, render: (one) => bytes(one.recv_oct) },
  { key: "send_all", title: "Sent in all", group: NETWORK, sort: "send_oct", width: "6rem", align: "right", isOptional: true, render: (one) => bytes(one.send_oct) },
];

const IN_CLUSTER = [
  { key: "node", title: "Entry node", group: OVERVIEW, sort: "node", width: "6rem", hint: "The node that the client is connected to", render: (one) => one.node },
  { key: "leader", title: "Leader", group: OVERVIEW, width: "6rem", isOptional: true, hint: "The node that leads the virtual host", render: (one) => one.leader_node ?? one.node },
];

export default function Connections() {
  const vhost = useChosenVhost();
  const isClustered = useStore(isInCluster);
  const columns = useVhostColumns(useMemo(() => (isClustered ? [...COLUMNS.slice(0, 3), ...IN_CLUSTER, ...COLUMNS.slice(3)] : COLUMNS), [isClustered]));
  return html`<${Page} title="Connections" badges=${vhost && html`<${Badge} kind="accent">${vhost}<//>`} test="connections">
    <${PagedTable} id="connections" url=${vhost ? path("vhosts", vhost, "connections") : path("connections")} columns=${columns}
      rowKey=${(one) => one.name} noun="connection" defaultSort=${{ key: "name" }} empty=${NO_CONNECTION} filterLabel="Filter by client name or address" />
  <//>`;
}
