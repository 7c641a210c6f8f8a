// All exchanges, page by page.

import { exchangePath, path, put } from "../api.js";
import { Badge, ExchangeLink, Page } from "../components.js";
import { Dialog, openDialog } from "../dialog.js";
import { ActionForm, ArgumentsEditor, CheckField, SelectField, TextField, rowsOf, tableOf, useForm } from "../forms.js";
import { html, useRef, useState } from "../html.js";
import { numberColumn, rateColumn } from "../parts/columns.js";
import { FEATURE_LEGEND, Features, Policies } from "../parts/features.js";
import { VhostField, useChosenVhost, useVhostColumns } from "../parts/vhosts.js";
import { usePolled } from "../poll.js";
import { Permitted } from "../permissions.js";
import { PagedTable } from "../table.js";

const COLUMNS = [
  { key: "name", title: "Name", sort: "name", render: (exchange) => html`<${ExchangeLink} vhost=${exchange.vhost} name=${exchange.name} />` },
  { key: "type", title: "Type", sort: "type", width: "5rem", phone: 3, render: (exchange) => exchange.type },
  { key: "features", title: "Features", legend: FEATURE_LEGEND, width: "6rem", render: (exchange) => html`<${Features} of=${exchange} />` },
  { key: "policy", title: "Policy", sort: "policy", width: "6rem", isOptional: true, render: (exchange) => html`<${Policies} of=${exchange} />` },
  rateColumn("in", "In", "message_stats.publish_in", { width: "6rem", phone: 1, hint: "Messages published to the exchange per second" }),
  rateColumn("out", "Out", "message_stats.publish_out", { width: "6rem", phone: 2, hint: "Messages routed to queues per second; a message counts once for each queue" }),
  rateColumn("refused", "Refused", "message_stats.refused", { hint: "Messages per second that a full queue refused" }),
  rateColumn("returned", "Returned", "message_stats.return_unroutable", { isOptional: true, hint: "Mandatory messages per second that were routed to no queue, and returned" }),
  rateColumn("unroutable", "Dropped", "message_stats.drop_unroutable", { isOptional: true, name: "Dropped (unroutable)", hint: "Messages per second that were routed to no queue, and dropped" }),
  numberColumn("delayed", "Delayed", "messages_delayed", { isOptional: true, hint: "Messages that wait in an exchange of type x-delayed-message" }),
];

const HINTS = [["alternate-exchange", "string", "Alternate exchange"], ["x-delayed-type", "string", "Type by which an x-delayed-message exchange routes"]];

function AddExchange({ close, onAdded }) {
  const form = useForm({ vhost: "", name: "", type: "direct", durable: "true", autoDelete: false, internal: false });
  const [rows, setRows] = useState(rowsOf());
  const { data } = usePolled(`${path("overview")}?columns=exchange_types&disable_stats=true`, 0);
  const types = data?.exchange_types ?? [{ name: "direct" }];
  const add = async () => {
    const { vhost, name, type, durable, autoDelete, internal } = form.values;
    await put(exchangePath(vhost, name), { type, durable: durable === "true", auto_delete: autoDelete, internal, arguments: tableOf(rows) });
    onAdded();
    close();
  };
  return html`<${Dialog} title="Add an exchange" onClose=${close} isWide=${true} test="add-exchange">
    <${ActionForm} onSubmit=${add} action="Add" done="Exchange created." onCancel=${close} test="add-exchange-form">
      <${VhostField} ...${form.bind("vhost")} />
      <${TextField} label="Name" ...${form.bind("name")} required autofocus data-test="form-name" />
      <${SelectField} label="Type" ...${form.bind("type")} options=${types.map((type) => [type.name, type.name])} hint=${types.find((type) => type.name === form.values.type)?.description} data-test="form-type" />
      <${SelectField} label="Durability" ...${form.bind("durable")} options=${[["true", "Durable"], ["false", "Transient"]]} />
      <${CheckField} label="Auto-delete" ...${form.bind("autoDelete")} />
      <${CheckField} label="Internal" hint="clients cannot publish to it" ...${form.bind("internal")} />
      <${ArgumentsEditor} rows=${rows} onChange=${setRows} hints=${HINTS} test="form-arguments" />
    <//><//>`;
}

export default function Exchanges() {
  const vhost = useChosenVhost();
  const again = useRef(null);
  const columns = useVhostColumns(COLUMNS);
  const add = () => openDialog((close) => html`<${AddExchange} close=${close} onAdded=${() => again.current?.()} />`);
  return html`<${Page} title="Exchanges" badges=${vhost && html`<${Badge} kind="accent" title="Only of this virtual host">${vhost}<//>`} test="exchanges"
      actions=${html`<${Permitted} to="configure" vhost=${vhost} what="Adding an exchange" test="cannot-add"><button type="button" class="primary" onClick=${add} data-test="add">Add an exchange</button><//>`}>
    <${PagedTable} id="exchanges" url=${vhost ? path("exchanges", vhost) : path("exchanges")} columns=${columns} again=${again}
      rowKey=${(exchange) => `${exchange.vhost}\n${exchange.name}`} noun="exchange" defaultSort=${{ key: "name" }} empty="No exchanges." />
  <//>`;
}
