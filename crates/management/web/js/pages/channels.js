// All channels, page by page.

import { path } from "../api.js";
import { Badge, ChannelLink, Page, UserLink } from "../components.js";
import { DASH } from "../format.js";
import { html } from "../html.js";
import { numberColumn, rateColumn } from "../parts/columns.js";
import { NO_CHANNEL } from "../parts/empty.js";
import { StateDot } from "../parts/state-dot.js";
import { useChosenVhost, useVhostColumns } from "../parts/vhosts.js";
import { PagedTable } from "../table.js";

/** How a channel works, in a letter. */
export const ChannelMode = ({ channel }) => html`${channel.confirm && html`<${Badge} title="publisher confirms">C<//>`}${channel.transactional && html`<${Badge} title="transactional">T<//>`}`;

/** How the state of a channel looks. */
export const channelState = (state) => ({ running: "good", idle: "" })[state] ?? "warning";

const OVERVIEW = "Overview";
const DETAILS = "Details";
const RATES = "Message rates";

/** The address of the client and the number of the channel: that of the broker is the same in all rows. */
const shortName = (name) => name.replace(/ -> \S+(?= \(\d+\)$)/, "");

export const CHANNELS = [
  { key: "name", title: "Channel", group: OVERVIEW, sort: "name", width: "9.6rem", render: (one) => html`<${ChannelLink} name=${one.name} text=${shortName(one.name)} />` },
  { key: "client", title: "Client", name: "Client-provided name", group: OVERVIEW, sort: "connection_details.user_provided_name", phone: 20, width: "5rem", render: (one) => one.connection_details?.user_provided_name ?? DASH },
  { key: "user", title: "User", group: OVERVIEW, sort: "user", width: "4rem", isOptional: true, render: (one) => html`<${UserLink} name=${one.user} />` },
  { key: "mode", title: "Mode", legend: [["C", "publisher confirms"], ["T", "transactional"]], group: OVERVIEW, width: "3rem", phone: 10, render: (one) => html`<${ChannelMode} channel=${one} />` },
  { key: "state", title: "State", group: OVERVIEW, sort: "state", phone: 9, width: "3rem", render: (one) => html`<${StateDot} kind=${channelState(one.state)} isUsual=${channelState(one.state) !== "warning"}>${one.state}<//>` },
  numberColumn("consumers", "Consumers", "consumer_count", { group: DETAILS }),
  numberColumn("unconfirmed", "Unconfirmed", "messages_unconfirmed", { group: DETAILS, phone: 2 }),
  numberColumn("prefetch", "Prefetch", "prefetch_count", { group: DETAILS, hint: "Limit of unacknowledged messages of each later consumer; 0 is no limit" }),
  numberColumn("global_prefetch", "Global prefetch", "global_prefetch_count", { group: DETAILS, isOptional: true, hint: "Limit of unacknowledged messages of all consumers together; 0 is no limit" }),
  numberColumn("unacked", "Unacked", "messages_unacknowledged", { group: DETAILS, phone: 1 }),
  numberColumn("uncommitted", "Uncommitted", "messages_uncommitted", { group: DETAILS, isOptional: true, name: "Uncommitted messages", hint: "Publishes that wait for tx.commit" }),
  numberColumn("acks_uncommitted", "Uncommitted acks", "acks_uncommitted", { group: DETAILS, isOptional: true, hint: "Acknowledgements that wait for tx.commit" }),
  rateColumn("publish", "Publish", "message_stats.publish", { group: RATES, phone: 3 }),
  rateColumn("confirm", "Confirm", "message_stats.confirm", { group: RATES }),
  rateColumn("refused", "Refused", "message_stats.refused", { group: RATES, hint: "Publishes per second that a full queue refused" }),
  rateColumn("returned", "Returned", "message_stats.return_unroutable", { group: RATES, isOptional: true, hint: "Mandatory messages per second that were routed to no queue, and returned" }),
  rateColumn("unroutable", "Dropped", "message_stats.drop_unroutable", { group: RATES, isOptional: true, name: "Dropped (unroutable)", hint: "Messages per second that were routed to no queue, and dropped" }),
  rateColumn("deliver", "Deliver", "message_stats.deliver_get", { group: RATES, phone: 4, name: "Deliver and get" }),
  rateColumn("redeliver", "Redeliver", "message_stats.redeliver", { group: RATES, isOptional: true }),
  rateColumn("ack", "Ack", "message_stats.ack", { group: RATES }),
];

export default function Channels() {
  const vhost = useChosenVhost();
  const columns = useVhostColumns(CHANNELS);
  return html`<${Page} title="Channels" badges=${vhost && html`<${Badge} kind="accent">${vhost}<//>`} test="channels">
    <${PagedTable} id="channels" url=${vhost ? path("vhosts", vhost, "channels") : path("channels")} columns=${columns}
      rowKey=${(one) => one.name} noun="channel" defaultSort=${{ key: "name" }} empty=${NO_CHANNEL} filterLabel="Filter by client name or address" />
  <//>`;
}
