// One redrive and its progress.

import { del, path } from "../../api.js";
import { Card, Facts, Loaded, Page, QueueLink, Stat } from "../../components.js";
import { attempt } from "../../errors.js";
import { duration, moment, number, rate } from "../../format.js";
import { html, useState } from "../../html.js";
import { useNow } from "../../parts/countdown.js";
import { Progress, RedriveState, target } from "../../parts/redrive.js";
import { usePolled } from "../../poll.js";
import { href } from "../../router.js";
import { Stats } from "../../stats.js";

const RUNNING_MS = 1000;

/** What the messages are called that a redrive in this state has not examined. */
const REST = { running: "Still to come", finished: "Beyond the limit" };

export default function Redrive({ params: { id } }) {
  const [isOver, setIsOver] = useState(false);
  const polled = usePolled(path("redrives", id), isOver ? 0 : RUNNING_MS);
  const isRunning = polled.data?.state === "running";
  if (polled.data && isOver === isRunning) setIsOver(!isRunning);
  const cancel = () => attempt("Cancelling", async () => {
    await del(path("redrives", id));
    polled.refresh();
  }, "Redrive cancelled. Messages that were moved stay where they are.");
  return html`<${Page} title=${polled.data ? `Redrive from ${polled.data.queue}` : "Redrive"} crumbs=${[["Redrives", href("redrives")]]} test="redrive"
    polled=${polled} gone="This redrive does not exist. The broker forgets old redrives."
    badges=${polled.data && html`<${RedriveState} state=${polled.data.state} />`}
    actions=${isRunning && html`<button type="button" class="danger" onClick=${cancel} data-test="cancel">Cancel</button>`}>
    <${Loaded} polled=${polled}>
      ${(job) => html`<${Job} job=${job} />`}<//>
  <//>`;
}

function Job({ job }) {
  const now = useNow();
  const took = Math.max(0, (job.ended_ms ?? now) - job.started_ms);
  const speed = took > 0 ? (job.moved * 1000) / took : 0;
  return html`
    <${Card} test="progress"><${Progress} job=${job} isLarge=${true} />
      ${job.reason && html`<p class="form-error" data-test="reason">${job.reason}</p>`}<//>
    <${Stats}>
      <${Stat} label="Moved" value=${number(job.moved)} test="moved" />
      <${Stat} label="Skipped" value=${number(job.skipped)} hint="The filter does not match them" test="skipped" />
      <${Stat} label="Unroutable" value=${number(job.unroutable)} hint="No queue would get them; they stay where they are" test="unroutable" />
      ${job.no_origin > 0 && html`<${Stat} label="No origin" value=${number(job.no_origin)} hint="They have not died since they were published or redriven; they stay where they are" test="no-origin" />`}
      <${Stat} label="Already gone" value=${number(job.gone)} hint="Consumed or expired before the redrive got to them" />
      ${job.not_examined > 0 && html`<${Stat} label=${REST[job.state] ?? "Not examined"} value=${number(job.not_examined)} hint="Neither moved nor compared with the filter" test="not-examined" />`}
      ${job.unacked_left > 0 && html`<${Stat} label="Unacknowledged" value=${number(job.unacked_left)} hint="Held by consumers when the redrive ended; they stay where they are" test="unacked-left" />`}
      <${Stat} label=${job.ended_ms === null ? "Running for" : "Duration"} value=${duration(job.ended_ms === null ? Math.floor(took / 1000) * 1000 : took)} />
      <${Stat} label="Rate" value=${took >= 1000 ? rate(speed) : "\u2013"} />
    <//>
    <${Card} title="Details"><${Facts} items=${[
      ["From queue", html`<${QueueLink} vhost=${job.vhost} name=${job.queue} tab="messages" />`],
      ["Vhost", job.vhost],
      ["Messages", job.kept ? "Dead letters that the queue keeps" : null],
      ["To", target(job.to)],
      ["User", job.user],
      ["Started", moment(job.started_ms)],
      ["Ended", job.ended_ms === null ? null : moment(job.ended_ms)],
      ["Messages at the start", number(job.messages_total)],
    ]} /><//>`;
}
