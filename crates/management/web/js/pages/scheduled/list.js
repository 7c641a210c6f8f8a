// Scheduled messages: when they are delivered, and how to change that.

import { path, withQuery } from "../../api.js";
import { Card, ExchangeLink, Page, QueueLink } from "../../components.js";
import { openDialog } from "../../dialog.js";
import { DASH, bytes, count, moment, number, visible } from "../../format.js";
import { html, useEffect, useState } from "../../html.js";
import { useColumns } from "../../list/chooser.js";
import { actionsColumn } from "../../parts/columns.js";
import { Countdown } from "../../parts/countdown.js";
import { NO_SCHEDULE } from "../../parts/empty.js";
import { ListHelp } from "../../parts/help.js";
import { Bars } from "../../parts/histogram.js";
import { isLost } from "../../parts/lost.js";
import { Permitted } from "../../permissions.js";
import { usePolled } from "../../poll.js";
import { place } from "../../router.js";
import { chosenVhost } from "../../session.js";
import { refreshMs } from "../../settings.js";
import { useStore } from "../../store.js";
import { Table } from "../../table.js";
import { CancelAll, askCancel, askDeliver, askReschedule } from "./actions.js";
import { Filters, filterOf } from "./filters.js";

const PAGE_SIZE = 50;

/** The broker looks at many messages to count them: no more often than so. */
const COUNT_MS = 10_000;

const Target = ({ row }) => (row.target_kind === "queue"
  ? html`<${QueueLink} vhost=${row.vhost} name=${row.target_name} />`
  : html`<${ExchangeLink} vhost=${row.vhost} name=${row.target_name} />`);

const columnsOf = (polled, hasVhost) => [
  { key: "target", title: "Waits in", render: (row) => html`<${Target} row=${row} />` },
  hasVhost && { key: "vhost", title: "Vhost", width: "5rem", isOptional: true, render: (row) => visible(row.vhost) },
  { key: "id", title: "Schedule id", width: "8rem", phone: 3, render: (row) => (row.id === null ? html`<span class="muted" title="Number that the broker gave to the message">no. ${row.handle}</span>` : visible(row.id)) },
  { key: "time", title: "Delivery time", width: "11rem", phone: 2, render: (row) => moment(row.delivery_time) },
  { key: "in", title: "Due in", width: "7rem", phone: 1, align: "right", render: (row) => html`<${Countdown} to=${row.delivery_time} at=${polled.at} isStale=${polled.isStale} />` },
  { key: "exchange", title: "Exchange", width: "7rem", isOptional: true, render: (row) => html`<${ExchangeLink} vhost=${row.vhost} name=${row.exchange} />` },
  { key: "key", title: "Routing key", width: "7rem", render: (row) => visible(row.routing_key) },
  { key: "message_id", title: "Message id", width: "6rem", isOptional: true, render: (row) => visible(row.message_id) ?? DASH },
  { key: "size", title: "Body", width: "5rem", align: "right", render: (row) => html`<span title=${row.persistent ? "persistent" : "transient: lost at a restart"}>${bytes(row.payload_bytes)}</span>` },
  actionsColumn((row) => html`
    <${Permitted} to="write" vhost=${row.vhost} name=${row.target_name} what="A change" test="cannot-change" isInRow=${true}>
      <button type="button" onClick=${() => askDeliver(row, polled.refresh)} data-test="deliver">Deliver</button>
      <button type="button" onClick=${() => askReschedule(row, polled.refresh)} data-test="reschedule">Reschedule\u2026</button>
      <button type="button" class="danger" onClick=${() => askCancel(row, polled.refresh)} data-test="cancel">Cancel\u2026</button><//>`),
].filter(Boolean);

/** Numbers of messages in sentences. */
function inWords({ messages, later, counts, complete: isWhole, bucket_ms: step }) {
  const hours = (counts.length * step) / 3_600_000;
  const within = messages - later;
  const when = hours === 1 ? "hour" : `${number(hours)} hours`;
  return [
    `${count(within, "message")} in this ${when}, ${number(later)} later.`,
    !isWhole && "More messages match than are counted.",
  ].filter(Boolean);
}

/** When messages are due: a bar per minute of the next hour, or of the hour at which the filter begins. */
function NextHour({ url, filter }) {
  const every = useStore(refreshMs);
  const polled = usePolled(withQuery(url, filter.query), every > 0 ? Math.max(every, COUNT_MS) : 0);
  const { data } = polled;
  if (!data || isLost(polled)) return null;
  const buckets = data.counts.map((amount, index) => ({ from_ms: index * data.bucket_ms, to_ms: (index + 1) * data.bucket_ms, count: amount }));
  const title = filter.query.after ? `The hour from ${moment(data.from)}` : "The next hour";
  return html`<${Card} title=${title} test="next-hour"><${Bars} buckets=${buckets} words=${inWords(data)} isRelative=${!filter.query.after} test="due" /><//>`;
}

export default function Scheduled() {
  const vhost = useStore(chosenVhost);
  const filter = filterOf(useStore(place).query);
  // Where pages begin; the last is the one that is shown.
  const [starts, setStarts] = useState([""]);
  const below = vhost === "" ? [] : [vhost];
  const kind = JSON.stringify([vhost, filter.query]);
  useEffect(() => setStarts([""]), [kind]);
  const polled = usePolled(withQuery(path("scheduled", ...below), { ...filter.query, limit: PAGE_SIZE, cursor: starts.at(-1) }));
  const { data, error } = polled;
  const [columns, menu] = useColumns("scheduled", columnsOf(polled, vhost === ""));
  const isRefused = isLost(polled) || (error && !data);
  const rows = isRefused ? [] : data?.messages ?? [];
  const empty = isRefused ? error.message : filter.isFiltered ? "No match for the filter." : NO_SCHEDULE;
  const turn = (isOn) => setStarts((old) => (isOn ? [...old, data.cursor] : old.slice(0, -1)));
  const cancelAll = () => openDialog((close) => html`<${CancelAll} vhost=${vhost} filter=${filter} close=${close} onDone=${polled.refresh} />`);
  return html`<${Page} title="Scheduled messages" test="scheduled">
    <p class="muted">Messages before their delivery time, in queues and in delayed exchanges.</p>
    <${NextHour} url=${path("scheduled-counts", ...below)} filter=${filter} />
    <${Filters} filter=${filter} />
    <section class=${polled.isStale ? "list is-stale" : "list"}>
      <div class="toolbar">
        <${Permitted} to="write" vhost=${vhost || undefined} what="A change" test="cannot-cancel-all">
          <button type="button" class="danger" disabled=${rows.length === 0} onClick=${cancelAll} data-test="cancel-all">${filter.isFiltered ? "Cancel all that match\u2026" : "Cancel all\u2026"}</button><//>
        <span class="gap"></span>
        <nav class="pager" aria-label="Pages"><span class="muted" data-test="page">Page ${number(starts.length)}</span>
          <button type="button" disabled=${starts.length === 1} onClick=${() => turn(false)} data-test="previous">Previous</button>
          <button type="button" disabled=${!data?.cursor || isRefused} onClick=${() => turn(true)} data-test="next">Next</button></nav>
        ${menu}<${ListHelp} columns=${columns} />
      </div>
      <${Table} columns=${columns} rows=${rows} rowKey=${(row) => JSON.stringify([row.vhost, row.target_kind, row.target_name, row.handle])}
        label="scheduled messages" empty=${empty} isLoading=${!data && !error} test="scheduled-messages" />
    </section>
  <//>`;
}
