// Publishing to a queue and taking messages out of it, by hand.

import { path, post } from "../../api.js";
import { Badge, Card, ExchangeLink } from "../../components.js";
import { confirm } from "../../dialog.js";
import { count } from "../../format.js";
import { ActionForm, NumberField, SelectField, useForm } from "../../forms.js";
import { html, useState } from "../../html.js";
import { Body, Properties } from "../../parts/message.js";
import { Permitted } from "../../permissions.js";
import { Publish } from "../../parts/publish.js";

const MODES = [
  ["ack_requeue_true", "Requeue (nack), as redelivered"],
  ["reject_requeue_true", "Reject and requeue"],
  ["ack_requeue_false", "Acknowledge: remove"],
  ["reject_requeue_false", "Reject: dead-letter or remove"],
];
const SHOWN_BYTES = 50_000;

function Get({ vhost, name, refresh }) {
  const form = useForm({ mode: MODES[0][0], encoding: "auto", count: "1" });
  const [messages, setMessages] = useState(null);
  const isFinal = form.values.mode.endsWith("false");
  const take = async () => {
    const { mode, encoding, count: most } = form.values;
    const what = mode.startsWith("reject") ? "rejected: without a dead-letter exchange they are lost" : "removed from the queue; what this page shows of them is all that is left";
    const text = html`Up to <b>${count(Number(most), "message")}</b> of ${name} are ${what}.`;
    if (isFinal && !(await confirm({ title: "Take messages out of the queue?", text, action: "Get and remove" }))) return;
    setMessages(await post(path("queues", vhost, name, "get"), { ackmode: mode, encoding, count: Number(most), truncate: SHOWN_BYTES }));
    refresh();
  };
  return html`<${Card} title="Get messages" test="get">
    <p class="muted">This takes messages as a consumer would. The tab \u201cMessages\u201d shows messages without any change.</p>
    <${Permitted} to="read" vhost=${vhost} name=${name} what="Getting messages" test="cannot-get"><${ActionForm} onSubmit=${take} action=${isFinal ? "Get and remove" : "Get"} isDangerous=${isFinal} test="get-form">
      <${SelectField} label="Ack mode" ...${form.bind("mode")} options=${MODES} data-test="get-mode" />
      <${SelectField} label="Encoding" ...${form.bind("encoding")} options=${[["auto", "text if it is text, else base64"], ["base64", "base64"]]} />
      <${NumberField} label="Messages" ...${form.bind("count")} min="1" max="1000" required />
    <//><//>
    ${messages && html`<div class="messages" data-test="got">
      ${messages.length === 0 && html`<p class="empty">The queue has no ready messages.</p>`}
      ${messages.map((message, index) => html`<article class="message" key=${index}>
        <p>${index + 1}. from <${ExchangeLink} vhost=${vhost} name=${message.exchange} />, key <code>${message.routing_key}</code>
          ${" "}${message.redelivered && html`<${Badge} kind="warning">redelivered<//>`}
          ${" "}<span class="muted">${message.message_count} left</span></p>
        <${Properties} message=${message} /><${Body} message=${message} /></article>`)}</div>`}
  <//>`;
}

export default function QueuePublish({ vhost, name, refresh }) {
  return html`<${Publish} vhost=${vhost} queue=${name} onPublished=${refresh} />
    <${Get} vhost=${vhost} name=${name} refresh=${refresh} />`;
}
