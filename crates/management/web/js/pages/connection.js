// One connection: who it is, what it carries, its channels; and closing it.

import { del, path } from "../api.js";
import { Chart, rateLine, useRange, withRange } from "../chart.js";
import { isInCluster } from "../cluster.js";
import { Card, Facts, Loaded, Page, UserLink, Values } from "../components.js";
import { Dialog, openDialog } from "../dialog.js";
import { bytes, count, moment, number } from "../format.js";
import { ActionForm, TextField, useForm } from "../forms.js";
import { html } from "../html.js";
import { ConnectionState } from "../parts/alarm.js";
import { Consequences, ofConnection } from "../parts/consequences.js";
import { usePolled } from "../poll.js";
import { go, href } from "../router.js";
import { useStore } from "../store.js";
import { PagedTable } from "../table.js";
import { CHANNELS } from "./channels.js";

const traffic = (connection) => [
  rateLine("From client", connection.recv_oct_details),
  rateLine("To client", connection.send_oct_details),
];

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
  return html`<${Dialog} title="Close this connection?" onClose=${close} isDangerous=${true} test="confirm">
    <p class="dialog-text">${name}</p>
    <${Consequences} load=${() => ofConnection(name)} />
    <${ActionForm} onSubmit=${submit} action="Close" done="Connection closed." isDangerous=${true} onCancel=${close}>
      <${TextField} label="Reason" hint="Sent to the client." ...${form.bind("reason")} isWide=${true} />
    <//><//>`;
}

const certificate = (one) => (one.peer_cert_subject ? `${one.peer_cert_subject}, by ${one.peer_cert_issuer}, ${one.peer_cert_validity}` : undefined);

export default function Connection({ params: { name } }) {
  const [range, picker] = useRange({ isShort: true });
  const polled = usePolled(withRange(path("connections", name), range, ["data_rates"]));
  const isClustered = useStore(isInCluster);
  const close = () => openDialog((done) => html`<${Close} name=${name} close=${done} />`);
  return html`<${Page} title=${polled.data?.user_provided_name ?? name} crumbs=${[["Connections", href("connections")], [name]]} test="connection"
      polled=${polled} gone="This connection does not exist (any more)."
      actions=${html`${picker}<button type="button" class="danger" onClick=${close} data-test="close">Close\u2026</button>`}>
    <${Loaded} polled=${polled}>${(one) => html`
      <div class="cards">
        <${Chart} title="Data rates" lines=${traffic} data=${one} source=${{ url: path("connections", name), kinds: ["data_rates"], isShort: true }} range=${range} format=${asBytes} test="chart-bytes" />
        <${Card} title="Details"><${Facts} items=${[
          ["State", html`<${ConnectionState} state=${one.state} isLong=${true} />`],
          ["User", html`<${UserLink} name=${one.user} />`],
          ["Virtual host", one.vhost],
          ["Entry node", isClustered ? one.node : undefined],
          ["Leader", isClustered ? one.leader_node ?? one.node : undefined],
          ["Connected at", moment(one.connected_at)],
          ["Protocol", one.protocol],
          ["Authentication", one.auth_mechanism],
          ["Heartbeat", one.timeout ? count(one.timeout, "second") : "none"],
          ["Frame size limit", bytes(one.frame_max)],
          ["Channel limit", number(one.channel_max)],
          ["Received in total", bytes(one.recv_oct)],
          ["Sent in total", bytes(one.send_oct)],
          ["Waiting to be sent", bytes(one.send_pend)],
          ["TLS", one.ssl ? [one.ssl_protocol, one.ssl_cipher].filter(Boolean).join(", ") : "no"],
          ["Certificate", certificate(one)],
        ]} /><//>
      </div>
      <${Card} title="Channels"><${PagedTable} id="connection-channels" url=${path("connections", name, "channels")} hasFilter="many" isInAddress=${false} columns=${CHANNELS} rowKey=${(channel) => channel.name} noun="channel" defaultSort=${{ key: "name" }} empty="No channels." /><//>
      <${Card} title="Client properties"><${Values} table=${one.client_properties} /><//>`}<//>
  <//>`;
}
