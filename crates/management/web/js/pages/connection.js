// One connection: who it is, what it carries, its channels; and closing it.

import { del, path } from "../api.js";
import { Chart, rateLine, useRange, withRange } from "../chart.js";
import { Card, Facts, Loaded, Page, State, UserLink, Values } from "../components.js";
import { Dialog, openDialog } from "../dialog.js";
import { bytes, count, moment, number } from "../format.js";
import { ActionForm, TextField, useForm } from "../forms.js";
import { html, useMemo } from "../html.js";
import { usePolled } from "../poll.js";
import { go, href } from "../router.js";
import { ListTable } from "../table.js";
import { CHANNELS } from "./channels.js";
import { connectionState } from "./connections.js";

function Traffic({ connection, range }) {
  const lines = useMemo(() => [
    rateLine("From client", connection.recv_oct_details),
    rateLine("To client", connection.send_oct_details),
  ], [connection]);
  return html`<${Chart} title="Bytes in a second" lines=${lines} range=${range} format=${asBytes} />`;
}

/** Bytes, also on the axis. */
const asBytes = Object.assign((value) => bytes(value), { isBytes: true });

function Close({ name, close }) {
  const form = useForm({ reason: "" });
  const submit = async () => {
    const headers = form.values.reason ? { "x-reason": form.values.reason } : {};
    await del(path("connections", name), {}, { headers });
    close();
    go(href("connections"));
  };
  return html`<${Dialog} title="Close this connection?" onClose=${close} test="confirm">
    <p>${name}</p>
    <${ActionForm} onSubmit=${submit} action="Close it" done="Closed." isDangerous=${true} onCancel=${close}>
      <${TextField} label="Reason" hint="The client is told it." ...${form.bind("reason")} isWide=${true} autofocus />
    <//><//>`;
}

const certificate = (one) => (one.peer_cert_subject ? `${one.peer_cert_subject}, by ${one.peer_cert_issuer}, ${one.peer_cert_validity}` : undefined);

export default function Connection({ params: { name } }) {
  const [range, picker] = useRange({ isShort: true });
  const polled = usePolled(withRange(path("connections", name), range, ["data_rates"]));
  const channels = usePolled(path("connections", name, "channels"));
  const close = () => openDialog((done) => html`<${Close} name=${name} close=${done} />`);
  return html`<${Page} title=${polled.data?.user_provided_name ?? name} crumbs=${[["Connections", href("connections")], [name]]} test="connection"
      actions=${html`${picker}<button type="button" class="danger" onClick=${close} data-test="close">Close\u2026</button>`}>
    <${Loaded} polled=${polled} gone="There is no such connection (any more).">${(one) => html`
      <div class="cards">
        <${Traffic} connection=${one} range=${range} />
        <${Card} title="What it is"><${Facts} items=${[
          ["State", html`<${State} kind=${connectionState(one.state)}>${one.state}<//>`],
          ["User", html`<${UserLink} name=${one.user} />`],
          ["Virtual host", one.vhost],
          ["Since", moment(one.connected_at)],
          ["Protocol", one.protocol],
          ["Login", one.auth_mechanism],
          ["Heartbeat", one.timeout ? count(one.timeout, "second") : "none"],
          ["Frames up to", bytes(one.frame_max)],
          ["Channels up to", number(one.channel_max)],
          ["Received in all", bytes(one.recv_oct)],
          ["Sent in all", bytes(one.send_oct)],
          ["Waits to be sent", bytes(one.send_pend)],
          ["TLS", one.ssl ? [one.ssl_protocol, one.ssl_cipher].filter(Boolean).join(", ") : "no"],
          ["Certificate", certificate(one)],
        ]} /><//>
      </div>
      <${Card} title="Channels"><${ListTable} id="connection-channels" rows=${channels.data} columns=${CHANNELS} rowKey=${(channel) => channel.name} noun="channel" defaultSort=${{ key: "name" }} empty="It has no channel open." /><//>
      <${Card} title="What the client says about itself"><${Values} table=${one.client_properties} /><//>`}<//>
  <//>`;
}
