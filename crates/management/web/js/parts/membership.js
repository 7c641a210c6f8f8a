// What administrators do with the nodes of a cluster: forget one that is gone, and let a node without a cluster join one.

import { del, path, post } from "../api.js";
import { Dialog, confirm, openDialog } from "../dialog.js";
import { attempt } from "../errors.js";
import { ActionForm, TextField, useForm } from "../forms.js";
import { html } from "../html.js";
import { Consequences, ofForget } from "./consequences.js";

async function forget(node, onDone) {
  const text = html`<${Consequences} load=${() => ofForget(node.name, node.runningOthers)} />`;
  if (!await confirm({ title: `Forget ${node.name}?`, text, action: "Forget", typed: node.name })) return;
  if (await attempt(`Forgetting ${node.name}`, () => del(path("nodes", node.name)), `${node.name} is forgotten.`)) onDone();
}

/** The button that takes a node out of the cluster; only for one that this node cannot reach. */
export function ForgetButton({ node, onDone, isQuiet = false }) {
  if (node.running !== false) return null;
  return html`<button type="button" class=${isQuiet ? "quiet" : "danger"} onClick=${() => forget(node, onDone)} data-test="forget">Forget\u2026</button>`;
}

function Join({ node, close }) {
  const form = useForm({ seed: "" });
  const submit = async () => {
    await post(path("nodes", node, "actions"), { action: "join_cluster", node: form.values.seed.trim() });
    close();
  };
  return html`<${Dialog} title="Join a cluster?" onClose=${close} test="join-dialog">
    <p>${node} gets virtual hosts, users and messages from the other nodes, and its own users are gone. It starts anew, and this page with it.</p>
    <${ActionForm} onSubmit=${submit} action="Join" done="The node joins the cluster." onCancel=${close}>
      <${TextField} label="A node of the cluster" hint="NAME@HOST or NAME@HOST:PORT" required=${true} ...${form.bind("seed")} data-test="seed" />
    <//><//>`;
}

/** The button by which a node without a cluster joins one. */
export const JoinButton = ({ node }) =>
  html`<button type="button" onClick=${() => openDialog((close) => html`<${Join} node=${node} close=${close} />`)} data-test="join">Join a cluster\u2026</button>`;
