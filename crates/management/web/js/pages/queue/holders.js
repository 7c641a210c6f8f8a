// The consumers of a queue, and the messages they hold unacknowledged.

import { get, path } from "../../api.js";
import { Badge, Card, ChannelLink } from "../../components.js";
import { DASH, number } from "../../format.js";
import { html, useEffect, useState } from "../../html.js";
import { consumerState } from "../../parts/consumers.js";
import { Age } from "../../parts/countdown.js";
import { NO_CONSUMER } from "../../parts/empty.js";
import { Table } from "../../table.js";

const LOOKED_AT = 200;

/** Unacknowledged messages by consumer: `{ tag, channel, messages, oldest }`. */
export function heldBy(messages) {
  const holders = new Map();
  for (const { consumer_tag: tag = null, channel = null, arrived_ms: at } of messages) {
    const key = JSON.stringify([channel, tag]);
    const holder = holders.get(key) ?? { tag, channel, messages: 0, oldest: at };
    holders.set(key, { ...holder, messages: holder.messages + 1, oldest: Math.min(holder.oldest, at) });
  }
  return [...holders.values()];
}

/**
 * The holders of a queue's messages, asked for again with each poll of the queue: `{ holders, isPart, error }`.
 * `holders` is null until they are known.
 */
function useHolders(vhost, queue) {
  const [state, setState] = useState({ holders: null, isPart: false, error: null });
  const isOut = queue.messages_unacknowledged > 0;
  useEffect(() => {
    if (!isOut) {
      setState({ holders: [], isPart: false, error: null });
      return undefined;
    }
    const abort = new AbortController();
    const query = { state: "unacknowledged", count: LOOKED_AT, truncate: 0 };
    get(path("queues", vhost, queue.name, "messages"), query, { signal: abort.signal }).then(
      ({ messages, cursor }) => setState({ holders: heldBy(messages), isPart: cursor !== null, error: null }),
      // Not every user may read messages: the line below the table says so, it is no fault.
      (error) => !abort.signal.aborted && !error.isAway && setState({ holders: null, isPart: false, error }),
    );
    return () => abort.abort();
  }, [vhost, queue]);
  return state;
}

const COLUMNS = [
  { key: "tag", title: "Consumer", render: (row) => html`<span class="break">${row.tag ?? html`<i>basic.get</i>`}</span>` },
  { key: "client", title: "Client", hint: "The name that the client has given itself", render: (row) => html`<span class="break">${row.client}</span>` },
  { key: "channel", title: "Channel", render: (row) => html`<${ChannelLink} name=${row.channel} />` },
  { key: "held", title: "Unacked", width: "7rem", align: "right", hint: "Messages delivered to it and not acknowledged", render: (row) => row.held },
  { key: "prefetch", title: "Prefetch", width: "7rem", align: "right", hint: "Most unacknowledged messages at a time", render: (row) => row.prefetch },
  { key: "state", title: "State", width: "10rem", render: (row) => row.state },
];

/** The consumers, with what they hold. */
export function Holders({ vhost, queue }) {
  const { holders: known, isPart, error } = useHolders(vhost, queue);
  const holders = known ?? [];
  const held = (amount) => (known === null ? DASH : `${isPart ? "at least " : ""}${number(amount)}`);
  const consumers = (queue.consumer_details ?? []).map((one) => {
    const channel = one.channel_details?.name ?? null;
    const holds = holders.find((holder) => holder.tag === one.consumer_tag && (holder.channel === channel || holder.channel === null));
    return {
      key: `${channel}/${one.consumer_tag}`,
      tag: one.consumer_tag,
      channel,
      client: one.channel_details?.user_provided_name ?? DASH,
      held: held(holds?.messages ?? 0),
      prefetch: one.prefetch_count === 0 ? "no limit" : number(one.prefetch_count),
      state: html`<${Badge} kind=${one.active === false || one.activity_status === "blocked" ? "" : "good"}>${consumerState(one.activity_status)[1]}<//>${one.ack_required === false && html` <${Badge} title="Deliveries need no acknowledgement">no ack<//>`}`,
    };
  });
  const keys = new Set(consumers.map((one) => one.key));
  const others = holders
    .filter(({ channel, tag }) => !keys.has(`${channel}/${tag}`) && !consumers.some((one) => one.tag === tag))
    .map(({ channel, tag, messages, oldest }) => ({
      key: `held/${channel}/${tag}`, tag, channel, client: DASH, held: held(messages), prefetch: DASH,
      state: html`<small>oldest: <${Age} since=${oldest} /></small>`,
    }));
  const rows = [...consumers, ...others];
  return html`<${Card} title="Consumers and their unacknowledged messages" test="holders">
    <${Table} columns=${COLUMNS} rows=${rows} rowKey=${(row) => row.key} label="Consumers" empty=${NO_CONSUMER} />
    ${error && html`<p class="muted" data-test="holders-error">The holders of unacknowledged messages are not known: ${error.message}</p>`}
  <//>`;
}
