// The cluster name, global parameters, runtime parameters.

import { del, path, put } from "../../api.js";
import { Card, Loaded, Page } from "../../components.js";
import { confirm, Dialog, openDialog } from "../../dialog.js";
import { attempt } from "../../errors.js";
import { plain } from "../../format.js";
import { ActionForm, AreaField, TextField, useForm } from "../../forms.js";
import { html, useRef } from "../../html.js";
import { actionsColumn } from "../../parts/columns.js";
import { PolicyLink } from "../../parts/source.js";
import { usePolled } from "../../poll.js";
import { href } from "../../router.js";
import { isAdministrator, isPolicymaker } from "../../session.js";
import { PagedTable } from "../../table.js";

function ClusterName() {
  const polled = usePolled(path("cluster-name"));
  return html`<${Card} title="Cluster name" test="cluster-name">
    <${Loaded} polled=${polled}>${({ name }) => (isAdministrator()
      ? html`<${NameForm} key=${name} name=${name} onDone=${polled.refresh} />` : html`<p>${name}</p>`)}<//><//>`;
}

function NameForm({ name, onDone }) {
  const form = useForm({ name });
  const save = async () => {
    await put(path("cluster-name"), { name: form.values.name });
    onDone();
  };
  return html`<${ActionForm} onSubmit=${save} action="Save" done="Cluster name changed." test="cluster-form">
    <${TextField} label="Name" ...${form.bind("name")} required hint="Clients see it when they connect." data-test="cluster-name-input" /><//>`;
}

function ParameterDialog({ name, value, isNew, close }) {
  const form = useForm({ name, value: value === undefined ? "" : JSON.stringify(value, null, 2) });
  const { values } = form;
  const save = async () => {
    let parsed;
    try {
      parsed = JSON.parse(values.value);
    } catch {
      throw new Error("The value is not valid JSON. Texts need quotes.");
    }
    await put(path("global-parameters", values.name), { value: parsed });
    close(true);
  };
  return html`<${Dialog} title=${isNew ? "New global parameter" : name} onClose=${() => close(false)} test="parameter-dialog">
    <${ActionForm} onSubmit=${save} action="Save" done=${`${values.name} set.`} onCancel=${() => close(false)}>
      ${isNew && html`<${TextField} label="Name" ...${form.bind("name")} required data-test="parameter-name" />`}
      <${AreaField} label="Value" hint="JSON" ...${form.bind("value")} rows=${6} data-test="parameter-value" /><//><//>`;
}

function Globals() {
  const again = useRef(null);
  const edit = async (row, isNew) => {
    if (await openDialog((close) => html`<${ParameterDialog} ...${row} isNew=${isNew} close=${close} />`)) again.current?.();
  };
  const remove = async ({ name }) => {
    if (!(await confirm({ title: `Delete the parameter ${name}?`, text: "Programs that read it get 404 then." }))) return;
    if (await attempt(`${name} was not deleted`, () => del(path("global-parameters", name)), `${name} deleted.`)) again.current?.();
  };
  const columns = [
    { key: "name", title: "Name", sort: "name", render: ({ name }) => name },
    { key: "value", title: "Value", render: ({ value }) => html`<code title=${plain(value)}>${plain(value)}</code>` },
    actionsColumn((row) => html`
      <button type="button" class="quiet" onClick=${() => edit(row, false)} data-test="edit">Change</button>
      <button type="button" class="quiet" onClick=${() => remove(row)} data-test="remove">Delete</button>`),
  ];
  return html`<${Card} title="Global parameters" isWide=${true} test="global-parameters"
    actions=${html`<button type="button" onClick=${() => edit({ name: "" }, true)} data-test="add">Add</button>`}>
    <p class="muted">Names with any JSON value, stored by the node for other programs.</p>
    <${PagedTable} id="global-parameters" url=${path("global-parameters")} again=${again} isInAddress=${false} columns=${columns} rowKey=${(row) => row.name} noun="parameter" defaultSort=${{ key: "name" }} empty="No parameters." /><//>`;
}

function Runtime() {
  const columns = [
    { key: "name", title: "Name", sort: "name", render: ({ component, vhost, name }) => {
      if (component === "operator_policy") return html`<${PolicyLink} source=${component} vhost=${vhost} name=${name} />`;
      return component === "vhost-limits" ? html`<a href=${href("admin", "limits")}>${name}</a>` : name;
    } },
    { key: "component", title: "Component", sort: "component", width: "7rem", phone: 3, render: ({ component }) => component },
    { key: "vhost", title: "Vhost", sort: "vhost", width: "5rem", phone: 2, render: ({ vhost }) => vhost },
    { key: "value", title: "Value", render: ({ value }) => html`<code class="wrap">${plain(value)}</code>` },
  ];
  return html`<${Card} title="Runtime parameters" isWide=${true} test="runtime-parameters">
    <p class="muted">Operator policies and vhost limits, which RabbitMQ keeps as parameters. Change them on their own pages.</p>
    <${PagedTable} id="runtime-parameters" url=${path("parameters")} isInAddress=${false} filterLabel="Filter by name, component or vhost" columns=${columns} rowKey=${(row) => `${row.component}/${row.vhost}/${row.name}`} noun="parameter" empty="No parameters." /><//>`;
}

export default function Parameters() {
  return html`<${Page} title="Parameters" test="page-parameters">
    <${ClusterName} />
    ${isPolicymaker() && html`<${Globals} /><${Runtime} />`}
  <//>`;
}
