// Tracing of a vhost: shown, switched on and off.

import { path, put } from "../api.js";
import { Card, State } from "../components.js";
import { confirm } from "../dialog.js";
import { attempt } from "../errors.js";
import { html } from "../html.js";

/** A card with the state of tracing and a button; `onDone` is called after a change. */
export function Tracing({ vhost, onDone }) {
  const isOn = vhost.tracing;
  const change = async () => {
    const text = "Copies of all published and delivered messages go to the exchange amq.rabbitmq.trace. This costs throughput.";
    if (!isOn && !await confirm({ title: `Start tracing in ${vhost.name}?`, text, action: "Start tracing", isDangerous: false })) return;
    // A PUT without a field leaves it as it is.
    const done = isOn ? "Tracing stopped." : "Tracing started.";
    if (await attempt("Tracing was not changed", () => put(path("vhosts", vhost.name), { tracing: !isOn }), done)) onDone();
  };
  return html`<${Card} title="Tracing" test="tracing" actions=${html`<button type="button" onClick=${change} data-test="switch-tracing">${isOn ? "Stop tracing" : "Start tracing\u2026"}</button>`}>
    <p><${State} kind=${isOn ? "warning" : ""}>${isOn ? "on" : "off"}<//></p>
    <p class="muted">With tracing, copies of all messages of the vhost go to the exchange amq.rabbitmq.trace.</p><//>`;
}
