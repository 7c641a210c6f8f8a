// One exchange: what comes in, where it goes, and publishing to it.

import { del, exchangePath } from "../api.js";
import { Chart, rateLine, useRange, withRange } from "../chart.js";
import { Card, Facts, Loaded, Page, Values } from "../components.js";
import { confirm } from "../dialog.js";
import { attempt } from "../errors.js";
import { number } from "../format.js";
import { html, useRef } from "../html.js";
import { AddBinding, Bindings } from "../parts/bindings.js";
import { Consequences, ofExchange } from "../parts/consequences.js";
import { Explain } from "../parts/explain.js";
import { Features, Policies } from "../parts/features.js";
import { Publish } from "../parts/publish.js";
import { Permitted } from "../permissions.js";
import { usePolled } from "../poll.js";
import { go, href } from "../router.js";
import { oneDecimal } from "./overview.js";

const rateLines = ({ message_stats: stats = {} }) => [
  rateLine("In", stats.publish_in_details, "Published to the exchange by clients"),
  rateLine("Out", stats.publish_out_details, "Routed to queues; a message counts once for each queue"),
  rateLine("Refused", stats.refused_details, "Refused by at least one full queue"),
  rateLine("Returned (mandatory)", stats.return_unroutable_details, "Routed to no queue, and returned"),
  rateLine("Dropped (unroutable)", stats.drop_unroutable_details, "Routed to no queue, and dropped"),
];

export default function Exchange({ params: { vhost, name } }) {
  const real = name === "amq.default" ? "" : name;
  const [range, picker] = useRange({ isShort: true });
  const polled = usePolled(withRange(exchangePath(vhost, real), range, ["msg_rates"]));
  const outgoing = useRef(null);
  const incoming = useRef(null);
  const isOurs = real !== "" && !real.startsWith("amq.");
  const remove = async () => {
    if (!await confirm({ title: `Delete exchange ${real}?`, text: html`<${Consequences} load=${() => ofExchange(vhost, real)} />` })) return;
    if (await attempt("Deleting", () => del(exchangePath(vhost, real)), "Deleted.")) go(href("exchanges"));
  };
  return html`<${Page} title=${real || "Default exchange"} crumbs=${[["Exchanges", href("exchanges")], [vhost]]} test="exchange" polled=${polled} vhost=${vhost} gone="This exchange does not exist (any more)."
      actions=${html`${picker}${isOurs && html`<${Permitted} to="configure" vhost=${vhost} name=${real} what="Deletion" test="cannot-delete"><button type="button" class="danger" onClick=${remove} data-test="delete">Delete</button><//>`}`}>
    <${Loaded} polled=${polled}>${(exchange) => html`
      <div class="cards">
        <${Chart} title="Message rates" lines=${rateLines} data=${exchange} source=${{ url: exchangePath(vhost, real), kinds: ["msg_rates"], isShort: true }} range=${range} format=${oneDecimal} test="chart-rates" />
        <${Card} title="Details">
          <${Facts} items=${[
            ["Type", exchange.type],
            ["Delayed messages", exchange.messages_delayed === undefined ? undefined : number(exchange.messages_delayed)],
            ["Features", html`<${Features} of=${exchange} />`],
            ["Policy", (exchange.policy || exchange.operator_policy) && html`<${Policies} of=${exchange} />`],
            ["Arguments", Object.keys(exchange.arguments ?? {}).length > 0 && html`<${Values} table=${exchange.arguments} />`],
            ["Declared by", exchange.user_who_performed_action],
          ].map(([key, value]) => [key, value || undefined])} />
          ${real === "" && html`<p class="muted">Every queue is bound to the default exchange by the name of the queue. Other bindings are not possible.</p>`}
        <//>
      </div>
      ${real !== "" && html`<${Bindings} title="Bindings from this exchange" url=${exchangePath(vhost, real, "bindings", "source")} again=${outgoing} isFrom=${true} test="outgoing" />
        <${Bindings} title="Bindings to this exchange" url=${exchangePath(vhost, real, "bindings", "destination")} again=${incoming} test="incoming" />
        <${Permitted} to=${["read", "write"]} vhost=${vhost} name=${real} what="Adding a binding" test="cannot-bind"><${AddBinding} vhost=${vhost} name=${real} isQueue=${false} onAdded=${() => { outgoing.current?.(); incoming.current?.(); }} /><//>`}
      <${Explain} kind="exchanges" vhost=${vhost} name=${real} />
      ${!exchange.internal && html`<${Publish} vhost=${vhost} exchange=${real} onPublished=${polled.refresh} />`}`}<//>
  <//>`;
}
