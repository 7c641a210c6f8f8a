// Queues that get dead letters: their messages, their sources, and redrives.

import { path } from "../../api.js";
import { Badge, Page, QueueLink } from "../../components.js";
import { compact, number, rate } from "../../format.js";
import { html } from "../../html.js";
import { actionsColumn } from "../../parts/columns.js";
import { REASONS } from "../../parts/deaths.js";
import { NO_DEAD_LETTERS } from "../../parts/empty.js";
import { openReasons } from "../../parts/given-reasons.js";
import { openRedrive } from "../../parts/redrive-dialog.js";
import { Permitted } from "../../permissions.js";
import { href } from "../../router.js";
import { chosenVhost } from "../../session.js";
import { useStore } from "../../store.js";
import { PagedTable } from "../../table.js";
import { Parts } from "./parts.js";

const SHOWN_MAX = 3;

/** Where dead letters come from: the first few of them. */
function Sources({ row }) {
  const names = [...new Set((row.from ?? []).map(({ queue }) => queue))];
  const total = row.from_total ?? names.length;
  return html`<span title=${names.join(", ")}>${names.slice(0, SHOWN_MAX).map((name, index) => html`<span key=${name}>${index > 0 && ", "}<${QueueLink} vhost=${row.vhost} name=${name} /></span>`)}
    ${total > SHOWN_MAX && html` <span class="muted">and ${number(total - SHOWN_MAX)} more</span>`}</span>`;
}

/** Why messages died where dead letters come from. */
function Reasons({ counts = {} }) {
  const reasons = Object.entries(counts).filter(([, amount]) => amount > 0);
  return reasons.length === 0 ? html`<span class="muted" title="Counted from zero since the broker or the queue started; older dead letters are told by \u201cReasons\u201d">none since the start</span>` : reasons.map(([reason, amount]) => html`
    <${Badge} key=${reason} kind="warning">${compact(amount)} ${REASONS[reason] ?? reason}<//>`);
}

const COLUMNS = [
  { key: "name", title: "Queue", sort: "name", render: (row) => html`<${QueueLink} vhost=${row.vhost} name=${row.name} />` },
  { key: "vhost", title: "Vhost", width: "5rem", sort: "vhost", isOptional: true, render: (row) => row.vhost },
  { key: "messages", title: "Messages", width: "5rem", phone: 1, align: "right", sort: "messages", render: (row) => number(row.messages) },
  { key: "consumers", title: "Consumers", width: "5rem", phone: 3, align: "right", sort: "consumers", render: (row) => (row.consumers === 0 ? html`<span class="zero">0</span>` : number(row.consumers)) },
  { key: "publish", title: "In", width: "4rem", phone: 2, sort: "rates.publish", align: "right", render: (row) => rate(row.rates?.publish) },
  { key: "from", title: "Dead letters from", render: (row) => html`<${Sources} row=${row} />` },
  { key: "reasons", title: "Deaths at the sources", width: "6rem", hint: "Reasons of the deaths in the queues that the dead letters come from", render: (row) => html`<${Reasons} counts=${row.from_count_by_reason} />` },
  actionsColumn((row) => html`
    <a class="button" href=${href("queues", row.vhost, row.name, "messages")} data-test="browse">Browse</a>
    <button type="button" disabled=${row.messages === 0} data-test="reasons" onClick=${() => openReasons({ vhost: row.vhost, queue: row.name })}>Reasons\u2026</button>
    <${Permitted} to="read" vhost=${row.vhost} name=${row.name} what="A redrive" test="cannot-redrive" isInRow=${true}>
      <button type="button" disabled=${row.messages === 0} data-test="redrive"
        onClick=${() => openRedrive({ vhost: row.vhost, queue: row.name })}>Redrive\u2026</button><//>`),
];

export default function DeadLetterQueues() {
  const vhost = useStore(chosenVhost);
  const url = vhost === "" ? path("dead-letter-queues") : path("dead-letter-queues", vhost);
  return html`<${Page} title="Dead letters" test="dead-letter-queues">
    <${Parts} current="queues" />
    <${PagedTable} id="dead-letter-queues" url=${url} columns=${COLUMNS} rowKey=${(row) => JSON.stringify([row.vhost, row.name])}
      noun="queue" defaultSort=${{ key: "messages", isReverse: true }} empty=${NO_DEAD_LETTERS} />
  <//>`;
}
