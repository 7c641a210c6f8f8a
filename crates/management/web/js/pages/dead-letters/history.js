// The history of dead letters: each death of a message, also of those that are gone.

import { path, withQuery } from "../../api.js";
import { Badge, ConnectionLink, ExchangeLink, Page, QueueLink } from "../../components.js";
import { DASH, count, moment, number, visible } from "../../format.js";
import { SelectField, TextField, useForm } from "../../forms.js";
import { html, useEffect, useLayoutEffect, useState } from "../../html.js";
import { useColumns } from "../../list/chooser.js";
import { REASONS } from "../../parts/deaths.js";
import { NO_DEATH } from "../../parts/empty.js";
import { ListHelp } from "../../parts/help.js";
import { isLost } from "../../parts/lost.js";
import { PolicyLink } from "../../parts/source.js";
import { useVhosts } from "../../parts/vhosts.js";
import { usePolled } from "../../poll.js";
import { place, setQuery } from "../../router.js";
import { chosenVhost } from "../../session.js";
import { useStore } from "../../store.js";
import { Table } from "../../table.js";
import { Parts } from "./parts.js";

const PAGE_SIZE = 50;

const NAMES = ["message_id", "header", "queue", "reason"];

/** Causes for which a dead message left no dead letter. */
const CAUSES = {
  no_dead_letter_exchange: "no dead-letter exchange",
  exchange_missing: "exchange missing",
  unroutable: "no matching binding",
  cycle: "cycle",
  target_full: "target full",
};

/** The queues that got the dead letter, or the cause for which there is none. */
function Targets({ death, vhost }) {
  if (death.outcome !== "dead_lettered") {
    const word = death.outcome === "kept" ? "kept" : "dropped";
    return html`<${Badge} kind=${death.outcome === "kept" ? "warning" : "danger"}>${word}: ${CAUSES[death.cause] ?? death.cause}<//>`;
  }
  if (death.targets.length === 0) return html`<${ExchangeLink} vhost=${vhost} name=${death.dead_letter_exchange} />`;
  const left = death.targets_total - death.targets.length;
  return html`${death.targets.map((name, index) => html`<span key=${name}>${index > 0 && ", "}<${QueueLink} vhost=${vhost} name=${name} /></span>`)}
    ${left > 0 && html` <span class="muted">and ${number(left)} more</span>`}`;
}

const By = ({ by }) => (by ? html`<span title=${by.connection}>${visible(by.user)}${by.consumer_tag && html`, consumer ${visible(by.consumer_tag)}`}</span>` : DASH);

const columnsOf = (vhost) => [
  { key: "time", title: "Time", width: "11rem", render: (death) => moment(death.time_ms) },
  { key: "message_id", title: "Message id", render: (death) => (death.message_id === null ? DASH : visible(death.message_id)) },
  { key: "queue", title: "Queue", width: "8rem", phone: 1, render: (death) => html`<${QueueLink} vhost=${vhost} name=${death.queue} />` },
  { key: "reason", title: "Reason", width: "8rem", phone: 2, render: (death) => html`<${Badge} kind="warning">${REASONS[death.reason] ?? death.reason}<//>${death.reason_given !== null && html` ${visible(death.reason_given)}`}` },
  { key: "by", title: "Settled by", width: "8rem", phone: 4, hint: "User and consumer whose reject, nack or return ended the message", render: (death) => html`<${By} by=${death.settled_by} />` },
  { key: "to", title: "Went to", width: "8rem", phone: 3, render: (death) => html`<${Targets} death=${death} vhost=${vhost} />` },
  { key: "policy", title: "Policy", width: "6rem", render: (death) => (death.policy === null ? DASH : html`<${PolicyLink} vhost=${vhost} name=${death.policy} />`) },
  { key: "key", title: "Routing key", width: "7rem", isOptional: true, render: (death) => visible(death.routing_key) },
  { key: "connection", title: "Connection", width: "10rem", isOptional: true, render: (death) => html`<${ConnectionLink} name=${death.settled_by?.connection} />` },
  { key: "headers", title: "Headers", width: "10rem", isOptional: true, render: (death) => JSON.stringify(death.properties?.headers ?? {}) },
];

/** The form; it applies when it is sent. */
function Filters({ query }) {
  const values = Object.fromEntries(NAMES.map((name) => [name, query.get(name) ?? ""]));
  const form = useForm(values);
  // At once: after the next picture it would overwrite what has been typed meanwhile.
  useLayoutEffect(() => form.set(values), NAMES.map((name) => values[name]));
  const apply = (event) => {
    event.preventDefault();
    setQuery(form.values);
  };
  const isFiltered = NAMES.some((name) => values[name] !== "");
  return html`<form class="browse-filter" onSubmit=${apply} role="search" aria-label="Deaths of messages" data-test="history-filter">
    <${TextField} label="Message id" ...${form.bind("message_id")} data-filter />
    <${TextField} label="Header" placeholder="NAME=VALUE or NAME" ...${form.bind("header")} />
    <${TextField} label="Queue" ...${form.bind("queue")} />
    <${SelectField} label="Reason" options=${[["", "any"], ...Object.entries(REASONS)]} ...${form.bind("reason")} />
    <div class="actions"><button type="submit" data-test="apply">Search</button>
      ${isFiltered && html`<button type="button" class="quiet" data-test="clear"
        onClick=${() => setQuery(Object.fromEntries(NAMES.map((name) => [name, null])))}>Clear</button>`}</div>
  </form>`;
}

/** How far back the history goes, in sentences. */
function About({ data }) {
  if (!data.enabled) return html`<p class="muted" data-test="history-about">The history is off: <code>dead_letter_history.max_entries</code> is 0.</p>`;
  return html`<p class="muted" data-test="history-about">All deaths since ${moment(data.kept_since_ms)} are kept${data.forgotten > 0 && html`, ${number(data.forgotten)} older ones are forgotten`}.
    ${data.dropped_without_dlx > 0 && html` ${count(data.dropped_without_dlx, "message")} died without a dead-letter exchange since the start: those without headers and message id are counted, not listed.`}
    ${data.hidden > 0 && html` ${count(data.hidden, "death")} in queues from which you may not read.`}</p>`;
}

export default function DeathHistory() {
  const chosen = useStore(chosenVhost);
  const vhosts = useVhosts() ?? [];
  const { query } = useStore(place);
  const vhost = query.get("vhost") || chosen || (vhosts.find(({ name }) => name === "/") ?? vhosts[0])?.name || "/";
  // Where pages begin; the last is the one that is shown.
  const [starts, setStarts] = useState([""]);
  const filter = Object.fromEntries(NAMES.map((name) => [name, query.get(name) ?? ""]).filter(([, value]) => value !== ""));
  const kind = JSON.stringify([vhost, filter]);
  useEffect(() => setStarts([""]), [kind]);
  const polled = usePolled(withQuery(path("dead-letter-history", vhost), { ...filter, count: PAGE_SIZE, cursor: starts.at(-1) }));
  const { data, error } = polled;
  const [columns, menu] = useColumns("dead-letter-history", columnsOf(vhost));
  const isRefused = isLost(polled) || (error && !data);
  const rows = isRefused ? [] : data?.deaths ?? [];
  const empty = isRefused ? error.message : Object.keys(filter).length > 0 ? "No match for the filter." : NO_DEATH;
  const turn = (isOn) => setStarts((old) => (isOn ? [...old, data.cursor] : old.slice(0, -1)));
  return html`<${Page} title="Dead letters" test="dead-letter-history">
    <${Parts} current="history" />
    <p class="muted">Deaths of messages in virtual host ${visible(vhost)}, also of messages that are gone, the latest first.</p>
    <${Filters} query=${query} />
    ${data && !isRefused && html`<${About} data=${data} />`}
    <section class=${polled.isStale ? "list is-stale" : "list"}>
      <div class="toolbar"><span class="gap"></span>
        <nav class="pager" aria-label="Pages"><span class="muted" data-test="page">Page ${number(starts.length)}</span>
          <button type="button" disabled=${starts.length === 1} onClick=${() => turn(false)} data-test="previous">Previous</button>
          <button type="button" disabled=${!data?.cursor || isRefused} onClick=${() => turn(true)} data-test="next">Next</button></nav>
        ${menu}<${ListHelp} columns=${columns} />
      </div>
      <${Table} columns=${columns} rows=${rows} rowKey=${(death) => String(death.id)} label="deaths of messages" empty=${empty}
        isLoading=${!data && !error} test="deaths" />
    </section>
  <//>`;
}
