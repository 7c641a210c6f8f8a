// Redrives: those that run, and the last that did.

import { path } from "../../api.js";
import { Page, QueueLink } from "../../components.js";
import { moment, number } from "../../format.js";
import { html } from "../../html.js";
import { usePolled } from "../../poll.js";
import { NO_REDRIVE } from "../../parts/empty.js";
import { Progress, RedriveState, target } from "../../parts/redrive.js";
import { href } from "../../router.js";
import { chosenVhost } from "../../session.js";
import { useStore } from "../../store.js";
import { ListTable } from "../../table.js";

const COLUMNS = [
  { key: "started", title: "Started", width: "11rem", sort: "started_ms", render: (job) => html`<a href=${href("redrives", job.id)} data-test="redrive">${moment(job.started_ms)}</a>` },
  { key: "queue", title: "From queue", sort: "queue", render: (job) => html`<${QueueLink} vhost=${job.vhost} name=${job.queue} />` },
  { key: "vhost", title: "Vhost", width: "8rem", isOptional: true, render: (job) => job.vhost },
  { key: "to", title: "To", sort: (job) => target(job.to), render: (job) => target(job.to) },
  { key: "user", title: "User", width: "8rem", sort: "user", render: (job) => job.user },
  { key: "state", title: "State", width: "8rem", sort: "state", render: (job) => html`<${RedriveState} state=${job.state} />` },
  { key: "moved", title: "Moved", width: "7rem", align: "right", sort: "moved", render: (job) => number(job.moved) },
  { key: "progress", title: "Scanned", width: "12rem", render: (job) => html`<${Progress} job=${job} />` },
];

export default function Redrives() {
  const vhost = useStore(chosenVhost);
  const polled = usePolled(path("redrives"));
  const rows = polled.data?.filter((job) => vhost === "" || job.vhost === vhost);
  return html`<${Page} title="Redrives" test="redrives">
    <p class="muted">Dead letters sent back to their queues. Start a redrive on the page of a dead-letter queue.</p>
    <${ListTable} id="redrives" polled=${polled} rows=${rows} columns=${COLUMNS} rowKey=${(job) => job.id} noun="redrive" defaultSort=${{ key: "started", isReverse: true }}
      hasFilter=${true} filterBy=${(job) => `${job.queue} ${job.user} ${target(job.to)}`} empty=${NO_REDRIVE} />
  <//>`;
}
