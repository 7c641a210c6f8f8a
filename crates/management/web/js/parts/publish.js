// Publishing one message by hand.

import { exchangePath, post } from "../api.js";
import { Card } from "../components.js";
import { note } from "../errors.js";
import { ActionForm, AreaField, ArgumentsEditor, CheckField, SelectField, TextField, rowsOf, tableOf, useForm } from "../forms.js";
import { html, useState } from "../html.js";
import { Permitted } from "../permissions.js";

/** The name of the default exchange in permissions. */
const DEFAULT = "amq.default";

const PROPERTIES = [
  ["content_type", "string", "content type", "application/json"], ["expiration", "string", "expiration (ms)"],
  ["priority", "number", "priority"], ["correlation_id", "string", "correlation id"],
  ["reply_to", "string", "reply to"], ["message_id", "string", "message id"],
  ["timestamp", "number", "timestamp (s)"], ["type", "string", "type"],
  ["user_id", "string", "user id"], ["app_id", "string", "app id"], ["content_encoding", "string", "content encoding"],
];

/**
 * A form that publishes to an exchange; of a queue, to the default exchange with the queue's name as the
 * routing key. `onPublished` is called after each.
 */
export function Publish({ vhost, exchange, queue, onPublished }) {
  const form = useForm({ key: queue ?? "", payload: "", encoding: "string", isPersistent: true });
  const [properties, setProperties] = useState(rowsOf());
  const [headers, setHeaders] = useState(rowsOf());
  const publish = async () => {
    const { key, payload, encoding, isPersistent } = form.values;
    const all = { ...tableOf(properties), delivery_mode: isPersistent ? 2 : 1 };
    const sent = tableOf(headers);
    if (Object.keys(sent).length > 0) all.headers = sent;
    const answer = await post(exchangePath(vhost, queue === undefined ? exchange : "", "publish"), {
      routing_key: key, properties: all, payload, payload_encoding: encoding,
    });
    if (!answer.routed) throw new Error("The message was not routed to any queue.");
    note("Message published.");
    onPublished?.();
  };
  return html`<${Card} title="Publish a message" test="publish">
    <${Permitted} to="write" vhost=${vhost} name=${queue === undefined ? exchange || DEFAULT : DEFAULT} what="Publishing" test="cannot-publish"><${ActionForm} onSubmit=${publish} action="Publish" test="publish-form">
      ${queue === undefined
        ? html`<${TextField} label="Routing key" ...${form.bind("key")} data-test="publish-key" />`
        : html`<p class="is-wide muted">The message goes to this queue through the default exchange.</p>`}
      <${SelectField} label="Encoding of the body" ...${form.bind("encoding")} options=${[["string", "Text"], ["base64", "Base64"]]} />
      <${CheckField} label="Persistent" ...${form.bind("isPersistent")} />
      <${AreaField} label="Body" ...${form.bind("payload")} data-test="publish-payload" />
      <${ArgumentsEditor} label="Headers" rows=${headers} onChange=${setHeaders} />
      <${ArgumentsEditor} label="Properties" rows=${properties} onChange=${setProperties} hints=${PROPERTIES} />
    <//><//><//>`;
}
