// Queues that get dead letters: their messages, their sources, and redrives.

import { path, withQuery } from "../../api.js";
import { Badge, Page, QueueLink } from "../../components.js";
import { DASH, compact, number, rate } from "../../format.js";
import { html, useMemo } from "../../html.js";
import { REASONS } from "../../parts/deaths.js";
import { openRedrive } from "../../parts/redrive-dialog.js";
import { usePolled } from "../../poll.js";
import { href } from "../../router.js";
import { chosenVhost } from "../../session.js";
import { useStore } from "../../store.js";
import { PagedTable } from "../../table.js";
import { Parts } from "./parts.js";

const SHOWN_MAX = 3;
const EDGES_MAX = 500;

/** Where dead letters come from: the first few of them. */
function Sources({ row }) {
  const names = [...new Set((row.from ?? []).map(({ queue }) => queue))];
  const total = row.from_total ?? names.length;
  return html`<span title=${names.join(", ")}>${names.slice(0, SHOWN_MAX).map((name, index) => html`<span key=${name}>${index > 0 && ", "}<${QueueLink} vhost=${row.vhost} name=${name} /></span>`)}
    ${total > SHOWN_MAX && html` <span class="muted">and ${number(total - SHOWN_MAX)} more</span>`}</span>`;
}

/** What has died in the queues that dead letters come from, by the key of where they go: counts by reason. */
function deathsBehind(map) {
  const all = new Map();
  for (const edge of map?.edges ?? []) {
    for (const to of edge.to_queues) {
      const key = JSON.stringify([edge.vhost, to]);
      const counts = all.get(key) ?? {};
      for (const [reason, amount] of Object.entries(edge.count_by_reason)) counts[reason] = (counts[reason] ?? 0) + amount;
      all.set(key, counts);
    }
  }
  return all;
}

/** Why messages died where dead letters come from. */
function Reasons({ counts = {} }) {
  const reasons = Object.entries(counts).filter(([, amount]) => amount > 0);
  return reasons.length === 0 ? DASH : reasons.map(([reason, amount]) => html`
    <${Badge} key=${reason} kind="warning">${compact(amount)} ${REASONS[reason] ?? reason}<//>`);
}

const columns = (deaths) => [
  { key: "name", title: "Queue", sort: "name", render: (row) => html`<${QueueLink} vhost=${row.vhost} name=${row.name} />` },
  { key: "vhost", title: "Vhost", width: "7rem", sort: "vhost", isOptional: true, render: (row) => row.vhost },
  { key: "messages", title: "Messages", width: "7rem", align: "right", sort: "messages", render: (row) => number(row.messages) },
  { key: "consumers", title: "Consumers", width: "7.5rem", align: "right", sort: "consumers", render: (row) => (row.consumers === 0 ? html`<span class="zero">0</span>` : number(row.consumers)) },
  { key: "publish", title: "In", width: "6rem", align: "right", render: (row) => rate(row.rates?.publish) },
  { key: "from", title: "Dead letters from", render: (row) => html`<${Sources} row=${row} />` },
  { key: "reasons", title: "Deaths at the sources", width: "15rem", hint: "Reasons of the deaths in the queues that the dead letters come from", render: (row) => html`<${Reasons} counts=${deaths.get(JSON.stringify([row.vhost, row.name]))} />` },
  { key: "actions", title: "", name: "Actions", width: "13rem", render: (row) => html`<span class="row-actions">
    <a class="button" href=${href("queues", row.vhost, row.name, "messages")} data-test="browse">Browse</a>
    <button type="button" disabled=${row.messages === 0} data-test="redrive"
      onClick=${() => openRedrive({ vhost: row.vhost, queue: row.name })}>Redrive\u2026</button></span>` },
];

export default function DeadLetterQueues() {
  const vhost = useStore(chosenVhost);
  const url = vhost === "" ? path("dead-letter-queues") : path("dead-letter-queues", vhost);
  const map = usePolled(withQuery(vhost === "" ? path("dead-letter-map") : path("dead-letter-map", vhost), { page: 1, page_size: EDGES_MAX })).data;
  const shown = useMemo(() => columns(deathsBehind(map)), [map]);
  return html`<${Page} title="Dead letters" test="dead-letter-queues">
    <${Parts} current="queues" />
    <${PagedTable} id="dead-letter-queues" url=${url} columns=${shown} rowKey=${(row) => JSON.stringify([row.vhost, row.name])}
      noun="queue" defaultSort=${{ key: "messages", isReverse: true }} empty="No queue gets dead letters." />
  <//>`;
}
