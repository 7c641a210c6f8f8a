// One channel: what it does, and its consumers.

import { path } from "../api.js";
import { Chart, rateLine, useRange, withRange } from "../chart.js";
import { Card, ConnectionLink, Facts, Loaded, Page, State, UserLink } from "../components.js";
import { moment, number } from "../format.js";
import { html } from "../html.js";
import { Consumers } from "../parts/consumers.js";
import { deliveryLines } from "../parts/flow.js";
import { usePolled } from "../poll.js";
import { href } from "../router.js";
import { channelState } from "./channels.js";
import { oneDecimal } from "./overview.js";

const rateLines = ({ message_stats: stats = {} }) => [
  rateLine("Publish", stats.publish_details),
  rateLine("Deliver", stats.deliver_get_details),
  rateLine("Acknowledge", stats.ack_details),
  rateLine("Confirm", stats.confirm_details),
  rateLine("Refused", stats.refused_details, "Refused by full queues"),
  rateLine("Returned (mandatory)", stats.return_unroutable_details, "Routed to no queue, and returned"),
  rateLine("Dropped (unroutable)", stats.drop_unroutable_details, "Routed to no queue, and dropped"),
];
const deliveries = ({ message_stats: stats = {} }) => deliveryLines(stats);

const limit = (value) => (value ? number(value) : "no limit");

export default function Channel({ params: { name } }) {
  const [range, picker] = useRange({ isShort: true });
  const source = { url: path("channels", name), kinds: ["msg_rates"], isShort: true };
  const polled = usePolled(withRange(source.url, range, source.kinds));
  return html`<${Page} title=${name} crumbs=${[["Channels", href("channels")]]} actions=${picker} test="channel"
      polled=${polled} gone="This channel does not exist (any more).">
    <${Loaded} polled=${polled}>${(one) => html`
      <div class="cards">
        <${Chart} title="Message rates" lines=${rateLines} data=${one} source=${source} range=${range} format=${oneDecimal} test="chart-rates" />
        <${Chart} title="Deliveries" lines=${deliveries} data=${one} source=${source} range=${range} format=${oneDecimal} test="chart-deliveries" />
        <${Card} title="Details"><${Facts} items=${[
          ["State", html`<${State} kind=${channelState(one.state)}>${one.state}<//>`],
          ["Connection", html`<${ConnectionLink} name=${one.connection_details?.name} />`],
          ["User", html`<${UserLink} name=${one.user} />`],
          ["Virtual host", one.vhost],
          ["Mode", one.transactional ? "transactional" : one.confirm ? "publisher confirms" : "plain"],
          ["Prefetch per consumer", limit(one.prefetch_count)],
          ["Prefetch per channel", limit(one.global_prefetch_count)],
          ["Unacknowledged", number(one.messages_unacknowledged)],
          ["Unconfirmed", number(one.messages_unconfirmed)],
          ["Uncommitted messages", one.transactional ? number(one.messages_uncommitted) : undefined],
          ["Uncommitted acks", one.transactional ? number(one.acks_uncommitted) : undefined],
          ["Idle since", one.idle_since && moment(Date.parse(one.idle_since))],
        ]} /><//>
      </div>
      <${Card} title="Consumers"><${Consumers} rows=${one.consumer_details ?? []} /><//>`}<//>
  <//>`;
}
