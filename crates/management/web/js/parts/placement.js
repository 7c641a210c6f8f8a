// What administrators do with the nodes of a vhost: give one a replica, and take it away.

import { del, path, put } from "../api.js";
import { Dialog, confirm, openDialog } from "../dialog.js";
import { attempt } from "../errors.js";
import { count } from "../format.js";
import { ActionForm, SelectField, useForm } from "../forms.js";
import { html } from "../html.js";
import { Consequences, ofTransfer } from "./consequences.js";

function Add({ vhost, nodes, close, onDone }) {
  const form = useForm({ node: nodes[0] });
  const submit = async () => {
    await put(path("vhosts", vhost, "members", form.values.node));
    close();
    onDone();
  };
  return html`<${Dialog} title=${`Add a replica of ${vhost}?`} onClose=${close} test="add-member-dialog">
    <p>The node gets the files of the leader, and votes once it has what the others have. Clients notice nothing.</p>
    <${ActionForm} onSubmit=${submit} action="Add" done="The node gets a replica." onCancel=${close}>
      <${SelectField} label="Node" options=${nodes.map((name) => [name, name])} ...${form.bind("node")} data-test="add-member-to" />
    <//><//>`;
}

/** Gives one of `nodes` a replica of a vhost. */
export const addMember = (vhost, nodes, onDone) =>
  openDialog((close) => html`<${Add} vhost=${vhost} nodes=${nodes} close=${close} onDone=${onDone} />`);

/** What is lost with so few replicas. */
const risk = (left) => (left === 1 ? ": the virtual host is gone with the disk of that node, and stands still while the node is down"
  : left === 2 ? ": the virtual host stands still while either node is down" : "");

/** Takes the replica of a vhost from a node; `placement` is the name of the vhost, its leader and its members. */
export async function removeMember({ name, leader, members }, node, onDone) {
  const left = members.length - 1;
  const text = html`<p>Its files of the virtual host are removed from the node. ${count(left, "replica")} will be left${risk(left)}.</p>
    ${node === leader && html`<${Consequences} load=${() => ofTransfer(name)} />`}`;
  if (!await confirm({ title: `Remove the replica of ${name} on ${node}?`, text, action: "Remove" })) return;
  if (await attempt("Removing the replica", () => del(path("vhosts", name, "members", node)), `${node} gives its replica up.`)) onDone();
}
