// What administrators do with the leads of a cluster: transfer one, balance all, drain a node and revive it.

import { del, path, post } from "../api.js";
import { Dialog, confirm, openDialog } from "../dialog.js";
import { attempt } from "../errors.js";
import { ActionForm, SelectField, useForm } from "../forms.js";
import { html } from "../html.js";
import { Consequences, connectionsOf, ofDrain, ofRebalance, ofTransfer } from "./consequences.js";

/** What clients of a drained node are told, as by `rabbitmq-upgrade drain`. */
const DRAIN_REASON = "Node is put into maintenance mode";
/** So many connections are closed at a time. */
const CLOSED_AT_ONCE = 8;

function Transfer({ vhost, nodes, close, onDone }) {
  const form = useForm({ node: "" });
  const submit = async () => {
    await post(path("vhosts", vhost, "leader"), form.values.node ? { node: form.values.node } : {});
    close();
    onDone();
  };
  return html`<${Dialog} title=${`Transfer the lead of ${vhost}?`} onClose=${close} isDangerous=${true} test="transfer-dialog">
    <${Consequences} load=${() => ofTransfer(vhost)} />
    <${ActionForm} onSubmit=${submit} action="Transfer" done="The lead was transferred." isDangerous=${true} onCancel=${close}>
      <${SelectField} label="New leader" options=${[["", "the node that is most up to date"], ...nodes.map((name) => [name, name])]} ...${form.bind("node")} data-test="transfer-to" />
    <//><//>`;
}

/** Lets another node lead a vhost: one of `nodes`. */
export const transfer = (vhost, nodes, onDone) =>
  openDialog((close) => html`<${Transfer} vhost=${vhost} nodes=${nodes} close=${close} onDone=${onDone} />`);

/** Lets each node lead its share. */
export async function rebalance(nodes, vhosts, onDone) {
  const text = html`Each node that leads more than its share transfers leads, one at a time.
    <${Consequences} load=${() => ofRebalance(nodes, vhosts)} />`;
  if (!await confirm({ title: "Rebalance the leads?", text, action: "Rebalance" })) return;
  if (await attempt("Rebalancing", () => post(path("rebalance", "queues")), "The leads are balanced.")) onDone();
}

const act = (node, action) => post(path("nodes", node, "actions"), { action });

/** Closes what clients have with a node, a few at a time; connections that are gone by then are no fault. */
async function closeClients(node) {
  const names = await connectionsOf(node);
  const next = async () => {
    for (let name = names.pop(); name !== undefined; name = names.pop()) {
      await del(path("connections", name), {}, { headers: { "x-reason": DRAIN_REASON } }).catch((error) => {
        if (error.status !== 404) throw error;
      });
    }
  };
  await Promise.all(Array.from({ length: CLOSED_AT_ONCE }, next));
}

async function drain(node, runningOthers, onDone) {
  const text = html`<${Consequences} load=${() => ofDrain(node, runningOthers)} />`;
  if (!await confirm({ title: `Drain ${node}?`, text, action: "Drain" })) return;
  await attempt(`Draining ${node}`, async () => {
    await act(node, "drain");
    await closeClients(node);
  }, `${node} is drained.`);
  onDone();
}

async function revive(node, onDone) {
  const text = `${node} accepts AMQP clients and may lead again. It takes no lead back by itself: a rebalance does that.`;
  if (!await confirm({ title: `Revive ${node}?`, text, action: "Revive", isDangerous: false })) return;
  await attempt(`Reviving ${node}`, () => act(node, "revive"), `${node} is revived.`);
  onDone();
}

/** The button that drains a node, or revives one that is drained; nothing for a node that cannot be asked. */
export function DrainButton({ node, onDone, isQuiet = false }) {
  if (!node.running) return null;
  const kind = (other) => (isQuiet ? "quiet" : other);
  return node.being_drained
    ? html`<button type="button" class=${kind("")} onClick=${() => revive(node.name, onDone)} data-test="revive">Revive\u2026</button>`
    : html`<button type="button" class=${kind("danger")} onClick=${() => drain(node.name, node.runningOthers, onDone)} data-test="drain">Drain\u2026</button>`;
}
