// The dialog with the messages of a queue by reason: why they died, and the reason that consumers gave, the header x-reason.

import { get, path } from "../api.js";
import { useBack } from "../away.js";
import { Badge, Waiting } from "../components.js";
import { Dialog, openDialog } from "../dialog.js";
import { count, number } from "../format.js";
import { html, useEffect, useState } from "../html.js";
import { Permitted } from "../permissions.js";
import { hrefWith } from "../router.js";
import { Table } from "../table.js";
import { actionsColumn } from "./columns.js";
import { REASONS } from "./deaths.js";
import { openRedrive } from "./redrive-dialog.js";

const SHOWN_MAX = 100;
const HEADER = "x-reason";

/** True if the filter of a line of text can have the reason: all of it is known, and it is one line. */
const isExact = ({ given_reason: reason, cut }) => !cut && !/[\r\n]/.test(reason);

/** The filter of messages with a reason, or with any. */
const headerOf = (group) => (isExact(group) ? `${HEADER}=${group.given_reason}` : HEADER);

/** Opens the dialog; `isKept` is for the dead letters that the queue keeps. */
export async function openReasons({ vhost, queue, isKept = false }) {
  // A filter of messages, if a redrive was asked for.
  const chosen = await openDialog((close) => html`<${Reasons} ...${{ vhost, queue, isKept, close }} />`);
  if (chosen) await openRedrive({ vhost, queue, isKept, filter: chosen });
}

/** The answer of the API, once: `{ answer, error }`. */
function useReasons(url, isKept) {
  const [state, setState] = useState({ answer: null, error: null });
  const [tries, setTries] = useState(0);
  useBack(() => setTries((before) => before + 1));
  useEffect(() => {
    const abort = new AbortController();
    get(url, { count: SHOWN_MAX, kept: isKept }, { signal: abort.signal }).then(
      (answer) => setState({ answer, error: null }),
      (error) => !abort.signal.aborted && !error.isAway && setState({ answer: null, error }),
    );
    return () => abort.abort();
  }, [url, isKept, tries]);
  return state;
}

function Reasons({ vhost, queue, isKept, close }) {
  const { answer, error } = useReasons(path("queues", vhost, queue, "given-reasons"), isKept);
  return html`<${Dialog} title=${`Reasons in ${queue}`} onClose=${() => close(null)} isWide=${true} test="reasons-dialog">
    ${error ? html`<p class="form-error" role="alert" data-test="reasons-error">${error.message}</p>`
      : !answer ? html`<p class="muted" aria-busy="true"><${Waiting} text="Counting\u2026" /></p>`
      : html`<${Counts} ...${{ vhost, queue, isKept, answer, close }} />`}
    <div class="actions"><button type="button" onClick=${() => close(null)} data-cancel>Close</button></div>
  <//>`;
}

/** The buttons of a row: `query` selects its messages in an address, `filter` in a redrive, which there may be none of. */
const Ways = ({ vhost, queue, isKept, query, filter, close }) => html`
  <a class="button" href=${hrefWith({ ...(isKept && { state: "dead" }), ...query }, "queues", vhost, queue, "messages")} onClick=${() => close(null)} data-test="browse-reason">Browse</a>
  <${Permitted} to="read" vhost=${vhost} name=${queue} what="A redrive" isInRow=${true}>
    <button type="button" disabled=${!filter} onClick=${() => close(filter)} data-test="redrive-reason">Redrive\u2026</button><//>`;

const MESSAGES = { key: "messages", title: "Messages", width: "5rem", align: "right", render: (group) => number(group.messages) };

function Counts({ vhost, queue, isKept, answer, close }) {
  const { death_reasons: deaths, without_death: alive, given_reasons: groups, other_reasons: other, without_reason: without } = answer;
  const { scanned, messages_total: total, complete } = answer;
  const given = { vhost, queue, isKept, close };
  const deathColumns = [
    { key: "reason", title: "Died because", render: ({ reason }) => REASONS[reason] ?? reason },
    MESSAGES,
    actionsColumn(({ reason }) => html`<${Ways} ...${given} query=${{ reason }} filter=${{ reason }} />`),
  ];
  const columns = [
    { key: "reason", title: "Reason given by the consumer", render: (group) => html`${group.given_reason} ${group.cut && html`<${Badge} title="Only the beginning of a long reason is shown">cut<//>`}` },
    MESSAGES,
    actionsColumn((group) => html`<${Ways} ...${given} query=${{ header: headerOf(group) }} filter=${isExact(group) ? { headers: [headerOf(group)] } : null} />`),
  ];
  return html`
    ${!(isKept && deaths.length === 0) && html`<${Table} columns=${deathColumns} rows=${deaths} rowKey=${({ reason }) => reason} label="Messages by the reason of their death" empty="No message has died." test="death-reasons" />`}
    ${alive > 0 && !isKept && deaths.length > 0 && html`<p class="muted" data-test="alive">${`${count(alive, "message")} ${alive === 1 ? "has" : "have"} not died.`}</p>`}
    ${groups.length + other > 0 && html`
      <${Table} columns=${columns} rows=${groups} rowKey=${({ given_reason: reason, cut }) => JSON.stringify([reason, cut])}
        label="Messages by the reason that their consumer gave" empty="Only reasons that are no text." test="reasons" />`}
    <p class="muted" data-test="reasons-rest">
      ${other > 0 && `${count(other, "message")} with other reasons given. `}${groups.length + other > 0
        ? `${count(without, "message")} without a reason given. `
        : html`No consumer gave a reason of its own, in the header <code>x-reason</code>. `}
      ${!complete && `Counted over the first ${count(scanned, "message")} of ${number(total)} only.`}</p>`;
}
