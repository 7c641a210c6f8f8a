// The arguments of a queue, and its effective settings with their sources.

import { Card, Facts, Values } from "../../components.js";
import { bytes, number, plain } from "../../format.js";
import { html } from "../../html.js";
import { Explain } from "../../parts/explain.js";
import { MembersCard } from "../../parts/members.js";
import { PolicyLink } from "../../parts/source.js";

const yes = (is) => (is ? "yes" : "no");

export default function Settings({ vhost, name, queue, placement }) {
  return html`
    <${Explain} vhost=${vhost} name=${name} />
    <div class="cards">
      <${Card} title="Arguments of the declaration" test="arguments"><${Values} table=${queue.arguments} /><//>
      <${Card} title="Details"><${Facts} items=${[
        ["Type", queue.type],
        ["Durable", yes(queue.durable)],
        ["Auto-delete", yes(queue.auto_delete)],
        ["Exclusive", yes(queue.exclusive)],
        ["Owner", queue.owner_pid_details?.name],
        ["Policy", queue.policy ? html`<${PolicyLink} vhost=${queue.vhost} name=${queue.policy} />` : "none"],
        ["Operator policy", queue.operator_policy ? html`<${PolicyLink} source="operator_policy" vhost=${queue.vhost} name=${queue.operator_policy} />` : "none"],
        ["Delivery limit", queue.delivery_limit === undefined ? undefined : plain(queue.delivery_limit)],
        ["Delayed retry", queue.delayed_retry],
        ["Messages in memory", number(queue.messages_ram)],
        ["Messages on disk only", number(queue.messages_paged_out)],
        ["Memory", bytes(queue.memory)],
        ["Idle since", queue.idle_since],
        ["Node", placement ? undefined : queue.node],
      ]} /><//>
      ${placement && html`<${MembersCard} placement=${placement} />`}
    </div>`;
}
