// Consumers of a queue or a channel.

import { ChannelLink, QueueLink, State, Values } from "../components.js";
import { DASH, duration, number } from "../format.js";
import { html } from "../html.js";
import { ListTable } from "../table.js";
import { NO_CONSUMER } from "./empty.js";

/** A colour and words for each state of a consumer. */
const STATES = {
  up: ["good", "up"],
  blocked: ["warning", "at prefetch limit"],
  single_active: ["good", "single active"],
  waiting: ["", "waiting"],
};

/** Colour and words for a state of a consumer, as the API names it. */
export const consumerState = (status = "up") => STATES[status] ?? ["", status.replaceAll("_", " ")];

const yesNo = (value) => (value ? "yes" : "no");

const CLIENT = { key: "client", title: "Client", hint: "The name that the client has given itself", sort: (one) => one.channel_details?.user_provided_name, render: (one) => one.channel_details?.user_provided_name ?? DASH };

const columns = (isOfQueue) => [
  ...(isOfQueue ? [CLIENT] : []),
  { key: "tag", title: "Tag", sort: "consumer_tag", render: (one) => html`<span title=${one.consumer_tag}>${one.consumer_tag}</span>` },
  isOfQueue
    ? { key: "channel", title: "Channel", sort: (one) => one.channel_details?.name, render: (one) => html`<${ChannelLink} name=${one.channel_details?.name} />` }
    : { key: "queue", title: "Queue", sort: (one) => one.queue?.name, render: (one) => html`<${QueueLink} vhost=${one.queue.vhost} name=${one.queue.name} tab="consumers" />` },
  { key: "state", title: "State", width: "10rem", sort: "activity_status", render: (one) => {
    const [kind, text] = consumerState(one.activity_status);
    return html`<${State} kind=${kind}>${text}<//>`;
  } },
  { key: "prefetch", title: "Prefetch", width: "6rem", align: "right", sort: "prefetch_count", render: (one) => (one.prefetch_count === 0 ? "no limit" : number(one.prefetch_count)) },
  { key: "unacked", title: "Unacked", width: "6rem", align: "right", sort: "messages_unacknowledged", render: (one) => number(one.messages_unacknowledged) },
  { key: "flags", title: "Ack mode", width: "6.6rem", render: (one) => (one.ack_required ? "manual" : "automatic") },
  { key: "exclusive", title: "Exclusive", width: "6.8rem", sort: "exclusive", render: (one) => yesNo(one.exclusive) },
  { key: "active", title: "Active", width: "5.6rem", sort: "active", render: (one) => yesNo(one.active !== false) },
  { key: "timeout", title: "Timeout", width: "7rem", align: "right", sort: "consumer_timeout", render: (one) => (one.consumer_timeout ? duration(one.consumer_timeout) : "none") },
  { key: "arguments", title: "Arguments", render: (one) => html`<${Values} table=${one.arguments} empty="" />` },
];

export const Consumers = ({ rows, isOfQueue = false }) => html`<${ListTable} id=${isOfQueue ? "queue-consumers" : "channel-consumers"} rows=${rows} columns=${columns(isOfQueue)}
  rowKey=${(one) => `${one.channel_details?.name}\n${one.consumer_tag}`} noun="consumer" hasFilter="many" filterBy=${(one) => `${one.consumer_tag} ${one.channel_details?.name} ${one.channel_details?.user_provided_name ?? ""}`} empty=${NO_CONSUMER} />`;
