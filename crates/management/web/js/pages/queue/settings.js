// What a queue was declared with, what is in force, and why.

import { path } from "../../api.js";
import { Card, Facts, Loaded, PolicyLink, Values } from "../../components.js";
import { bytes, number, plain } from "../../format.js";
import { html } from "../../html.js";
import { usePolled } from "../../poll.js";
import { ListTable } from "../../table.js";

const SOURCES = { argument: "its argument", policy: "a policy", operator_policy: "an operator policy", default: "the default" };

const KEYS = [
  { key: "key", title: "Setting", sort: "key", render: (one) => html`<code>${one.key}</code>` },
  { key: "value", title: "In force", render: (one) => (one.value === null ? html`<span class="muted">none</span>` : html`<b>${plain(one.value)}</b>`) },
  { key: "source", title: "By", sort: "source", render: (one) => html`${SOURCES[one.source] ?? one.source}${one.source_name && html` <${PolicyLink} name=${one.source_name} />`}` },
  { key: "lost", title: "Instead of", render: (one) => (one.lost ?? []).map((lost) => `${plain(lost.value)} (${SOURCES[lost.source] ?? lost.source}${lost.source_name ? ` ${lost.source_name}` : ""})`).join(", ") },
];

const yes = (is) => (is ? "yes" : "no");

export default function Settings({ vhost, name, queue }) {
  const why = usePolled(path("queues", vhost, name, "explain"));
  return html`
    <${Card} title="What is in force, and why" test="explain">
      <${Loaded} polled=${why}>${(explained) => html`<${ListTable} id="explain" rows=${explained.keys} columns=${KEYS} rowKey=${(one) => one.key} noun="setting" />`}<//>
    <//>
    <div class="cards">
      <${Card} title="Arguments it was declared with" test="arguments"><${Values} table=${queue.arguments} /><//>
      <${Card} title="What it is"><${Facts} items=${[
        ["Type", queue.type],
        ["Durable", yes(queue.durable)],
        ["Auto-delete", yes(queue.auto_delete)],
        ["Exclusive", yes(queue.exclusive)],
        ["Belongs to", queue.owner_pid_details?.name],
        ["Policy", queue.policy ? html`<${PolicyLink} name=${queue.policy} />` : "none"],
        ["Operator policy", queue.operator_policy ?? "none"],
        ["Delivery limit", queue.delivery_limit === undefined ? undefined : plain(queue.delivery_limit)],
        ["Delayed retry", queue.delayed_retry],
        ["Messages in memory", number(queue.messages_ram)],
        ["Messages on disk only", number(queue.messages_paged_out)],
        ["Memory", bytes(queue.memory)],
        ["Idle since", queue.idle_since],
        ["Node", queue.node],
      ]} /><//>
    </div>`;
}
