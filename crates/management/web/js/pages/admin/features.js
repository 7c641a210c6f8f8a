// Feature flags and deprecated features.

import { path, put } from "../../api.js";
import { Badge, Card, Page, State } from "../../components.js";
import { attempt } from "../../errors.js";
import { html } from "../../html.js";
import { usePolled } from "../../poll.js";
import { isAdministrator } from "../../session.js";
import { ListTable } from "../../table.js";

function Flags() {
  const polled = usePolled(path("feature-flags"), 60_000);
  const enable = async ({ name }) => {
    if (await attempt(`${name} was not enabled`, () => put(path("feature-flags", name, "enable")), `${name} enabled`)) polled.refresh();
  };
  const columns = [
    { key: "name", title: "Flag", sort: "name", width: "22rem", render: ({ name }) => html`<code title=${name}>${name}</code>` },
    { key: "state", title: "State", sort: "state", width: "8rem", render: ({ state }) => html`<${State} kind=${state === "enabled" ? "good" : "warning"}>${state}<//>` },
    { key: "stability", title: "Stability", sort: "stability", width: "8rem", render: ({ stability }) => stability },
    { key: "desc", title: "Description", render: ({ desc }) => html`<span class="wrap">${desc}</span>` },
    { key: "actions", title: "", name: "Actions", width: "7rem", align: "right", render: (row) => row.state !== "enabled" && isAdministrator()
      && html`<button type="button" class="quiet" onClick=${() => enable(row)}>Enable</button>` },
  ];
  const off = (polled.data ?? []).filter(({ state }) => state !== "enabled").length;
  return html`<${Card} title="Feature flags" isWide=${true} test="feature-flags">
    <p class="muted">${polled.data && (off === 0 ? "All are enabled. Clients read them to decide which functions to use." : `${off} are not enabled.`)}</p>
    <${ListTable} id="feature-flags" polled=${polled} columns=${columns} rowKey=${(row) => row.name} noun="flag" defaultSort=${{ key: "name" }} hasFilter=${true} empty="None." /><//>`;
}

const PHASES = { permitted_by_default: "permitted by default", denied_by_default: "denied by default", disconnected: "disconnected", removed: "removed" };

function Deprecated() {
  const polled = usePolled(path("deprecated-features"), 60_000);
  const used = new Set((usePolled(path("deprecated-features", "used"), 60_000).data ?? []).map(({ name }) => name));
  const columns = [
    { key: "name", title: "Feature", sort: "name", width: "18rem", render: ({ name }) => html`<code title=${name}>${name}</code>` },
    { key: "used", title: "In use", sort: (row) => used.has(row.name), width: "8rem", render: ({ name }) => (used.has(name) ? html`<${Badge} kind="warning">in use<//>` : html`<span class="muted">no</span>`) },
    { key: "state", title: "Here", sort: "state", width: "9rem", render: ({ state }) => state },
    { key: "phase", title: "In RabbitMQ", sort: "deprecation_phase", render: (row) => PHASES[row.deprecation_phase] ?? row.deprecation_phase },
  ];
  return html`<${Card} title="Deprecated features" isWide=${true} test="deprecated-features">
    <p class="muted">Features that RabbitMQ will remove, and whether clients of this broker use them.</p>
    <${ListTable} id="deprecated-features" polled=${polled} columns=${columns} rowKey=${(row) => row.name} noun="feature" defaultSort=${{ key: "name" }} empty="None." /><//>`;
}

export default function Features() {
  return html`<${Page} title="Features" test="page-features"><${Flags} /><${Deprecated} /><//>`;
}
