// Bindings of a queue or an exchange: shown, added, removed.

import { del, path, post } from "../api.js";
import { Card, ExchangeLink, QueueLink, Values } from "../components.js";
import { confirm } from "../dialog.js";
import { attempt } from "../errors.js";
import { ActionForm, ArgumentsEditor, SelectField, TextField, rowsOf, tableOf, useForm } from "../forms.js";
import { html, useState } from "../html.js";
import { Permitted, useMay } from "../permissions.js";
import { PagedTable } from "../table.js";
import { actionsColumn } from "./columns.js";
import { NO_BINDING } from "./empty.js";

/** The path of the bindings between two things; the default exchange has a name there. */
const between = ({ vhost, source, destination, destination_type: type }, ...key) =>
  path("bindings", vhost, "e", source || "amq.default", type === "queue" ? "q" : "e", destination, ...key);

/** The directions of a binding that an exchange may have, with the permission for the exchange. */
const DIRECTIONS = [["to-queue", "to a queue", "read"], ["to-exchange", "to an exchange", "read"], ["from", "from an exchange", "write"]];

/** Deletes a binding, for users with the permissions for both ends. */
function Unbind({ binding, remove }) {
  const { vhost, source, destination } = binding;
  const lacks = { vhost, what: "Deleting the binding", test: "cannot-unbind", isInRow: true };
  return html`<${Permitted} to="write" name=${destination} ...${lacks}><${Permitted} to="read" name=${source} ...${lacks}>
    <button type="button" class="danger" onClick=${() => remove(binding)} data-test="unbind">Unbind</button><//><//>`;
}

const columns = (isFrom, remove) => [
  isFrom
    ? { key: "other", title: "To", sort: "destination", render: (one) => (one.destination_type === "queue"
      ? html`<${QueueLink} vhost=${one.vhost} name=${one.destination} />`
      : html`<${ExchangeLink} vhost=${one.vhost} name=${one.destination} />`) }
    : { key: "other", title: "From", sort: "source", render: (one) => html`<${ExchangeLink} vhost=${one.vhost} name=${one.source} />` },
  ...(isFrom ? [{ key: "type", title: "Type", sort: "destination_type", width: "7rem", render: (one) => one.destination_type }] : []),
  { key: "routing_key", title: "Routing key", sort: "routing_key", render: (one) => one.routing_key },
  { key: "arguments", title: "Arguments", width: "6rem", render: (one) => html`<${Values} table=${one.arguments} empty="" />` },
  actionsColumn((one) => one.source !== "" && html`<${Unbind} binding=${one} remove=${remove} />`),
];

/** A list of the bindings at `url`: `isFrom` says that they begin at the exchange of this page. `again` is a ref, as of `PagedTable`. */
export function Bindings({ title, url, again, isFrom = false, test }) {
  const remove = async (one) => {
    const text = html`From <b>${one.source}</b> to the ${one.destination_type} <b>${one.destination}</b>${one.routing_key ? html`, key <code>${one.routing_key}</code>` : ""}.`;
    if (!await confirm({ title: "Delete the binding?", text, action: "Unbind" })) return;
    if (await attempt("The binding was not deleted", () => del(between(one, one.properties_key)), "Binding deleted.")) again.current?.();
  };
  return html`<${Card} title=${title} test=${test}>
    <${PagedTable} id=${test} url=${url} again=${again} columns=${columns(isFrom, remove)} noun="binding" hasFilter="many" isInAddress=${false} filterLabel="Filter by name or key"
      rowKey=${(one) => `${one.source}\n${one.destination_type}\n${one.destination}\n${one.properties_key}`}
      empty=${NO_BINDING} />
  <//>`;
}

/**
 * Adds a binding. Of a queue: from which exchange; of an exchange: in which direction, and to or from what.
 */
export function AddBinding({ vhost, name, isQueue, onAdded }) {
  const form = useForm({ direction: isQueue ? "from" : "to-queue", other: "", key: "" });
  const [rows, setRows] = useState(rowsOf());
  const { other, key } = form.values;
  const may = useMay();
  const directions = DIRECTIONS.filter(([, , what]) => may(what, vhost, name));
  // The first choice may need a permission that the user lacks.
  const direction = directions.some(([one]) => one === form.values.direction) ? form.values.direction : directions[0]?.[0];
  const add = async () => {
    const isFrom = direction === "from";
    const binding = isFrom
      ? { vhost, source: other, destination: name, destination_type: isQueue ? "queue" : "exchange" }
      : { vhost, source: name, destination: other, destination_type: direction === "to-queue" ? "queue" : "exchange" };
    await post(between(binding), { routing_key: key, arguments: tableOf(rows) });
    form.set({ key: "" });
    setRows(rowsOf());
    onAdded();
  };
  return html`<${Card} title="Add a binding" test="add-binding">
    <${ActionForm} onSubmit=${add} action="Bind" done="Binding created." test="bind-form">
      ${!isQueue && html`<${SelectField} label="Direction" ...${form.bind("direction")} value=${direction} options=${directions.map(([one, title]) => [one, title])} data-test="bind-direction" />`}
      <${TextField} label=${direction === "from" ? "From exchange" : direction === "to-queue" ? "To queue" : "To exchange"} ...${form.bind("other")} required data-test="bind-other" />
      <${TextField} label="Routing key" ...${form.bind("key")} data-test="bind-key" />
      <${ArgumentsEditor} rows=${rows} onChange=${setRows} />
    <//><//>`;
}
