// All channels, page by page.

import { path } from "../api.js";
import { Badge, ChannelLink, Page, State, UserLink } from "../components.js";
import { html } from "../html.js";
import { numberColumn, rateColumn } from "../parts/columns.js";
import { useChosenVhost, useVhostColumns } from "../parts/vhosts.js";
import { PagedTable } from "../table.js";

/** How a channel works, in a letter. */
export const ChannelMode = ({ channel }) => html`${channel.confirm && html`<${Badge} title="publisher confirms">C<//>`}${channel.transactional && html`<${Badge} title="transactional">T<//>`}`;

/** How the state of a channel looks. */
export const channelState = (state) => ({ running: "good", idle: "" })[state] ?? "warning";

export const CHANNELS = [
  { key: "name", title: "Channel", sort: "name", render: (one) => html`<${ChannelLink} name=${one.name} />` },
  { key: "user", title: "User", sort: "user", width: "7rem", render: (one) => html`<${UserLink} name=${one.user} />` },
  { key: "mode", title: "Mode", width: "4.5rem", render: (one) => html`<${ChannelMode} channel=${one} />` },
  { key: "state", title: "State", sort: "state", width: "6.5rem", render: (one) => html`<${State} kind=${channelState(one.state)}>${one.state}<//>` },
  numberColumn("consumers", "Consumers", "consumer_count", { width: "7.2rem" }),
  numberColumn("unconfirmed", "Unconfirmed", "messages_unconfirmed", { width: "8rem" }),
  numberColumn("prefetch", "Prefetch", "prefetch_count", { width: "6rem", hint: "Limit of unacknowledged messages of each later consumer; 0 is no limit" }),
  numberColumn("global_prefetch", "Global prefetch", "global_prefetch_count", { width: "9rem", isOptional: true, hint: "Limit of unacknowledged messages of all consumers together; 0 is no limit" }),
  numberColumn("unacked", "Unacked", "messages_unacknowledged"),
  numberColumn("uncommitted", "Uncommitted", "messages_uncommitted", { width: "8rem", isOptional: true, name: "Uncommitted messages", hint: "Publishes that wait for tx.commit" }),
  numberColumn("acks_uncommitted", "Uncommitted acks", "acks_uncommitted", { width: "9.4rem", isOptional: true, hint: "Acknowledgements that wait for tx.commit" }),
  rateColumn("publish", "Publish", "message_stats.publish"),
  rateColumn("confirm", "Confirm", "message_stats.confirm"),
  rateColumn("refused", "Refused", "message_stats.refused", { hint: "Publishes per second that a full queue refused" }),
  rateColumn("returned", "Returned", "message_stats.return_unroutable", { isOptional: true, width: "6.4rem", hint: "Mandatory messages per second that were routed to no queue, and returned" }),
  rateColumn("unroutable", "Dropped", "message_stats.drop_unroutable", { isOptional: true, width: "6.4rem", name: "Dropped (unroutable)", hint: "Messages per second that were routed to no queue, and dropped" }),
  rateColumn("deliver", "Deliver", "message_stats.deliver_get"),
  rateColumn("redeliver", "Redeliver", "message_stats.redeliver", { isOptional: true, width: "7rem" }),
  rateColumn("ack", "Ack", "message_stats.ack"),
];

export default function Channels() {
  const vhost = useChosenVhost();
  const columns = useVhostColumns(CHANNELS);
  return html`<${Page} title="Channels" badges=${vhost && html`<${Badge} kind="accent">${vhost}<//>`} test="channels">
    <${PagedTable} id="channels" url=${vhost ? path("vhosts", vhost, "channels") : path("channels")} columns=${columns}
      rowKey=${(one) => one.name} noun="channel" defaultSort=${{ key: "name" }} empty="No channels." />
  <//>`;
}
