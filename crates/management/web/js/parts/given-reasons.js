// The dialog with the messages of a queue by the reason that their consumers gave, the header x-reason.

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
import { openRedrive } from "./redrive-dialog.js";

const SHOWN_MAX = 100;
const HEADER = "x-reason";

/** True if the filter of a line of text can have the reason: all of it is known, and it is one line. */
const isExact = ({ given_reason: reason, cut }) => !cut && !/[\r\n]/.test(reason);

/** The filter of messages with a reason, or with any. */
const headerOf = (group) => (isExact(group) ? `${HEADER}=${group.given_reason}` : HEADER);

/** Opens the dialog; `isKept` is for the dead letters that the queue keeps. */
export async function openReasons({ vhost, queue, isKept = false }) {
  const chosen = await openDialog((close) => html`<${Reasons} ...${{ vhost, queue, isKept, close }} />`);
  if (chosen) await openRedrive({ vhost, queue, isKept, filter: { headers: [headerOf(chosen)] } });
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

function Counts({ vhost, queue, isKept, answer, close }) {
  const { given_reasons: groups, other_reasons: other, without_reason: without, scanned, messages_total: total, complete } = answer;
  const state = isKept ? { state: "dead" } : {};
  const columns = [
    { key: "reason", title: "Reason", render: (group) => html`${group.given_reason} ${group.cut && html`<${Badge} title="Only the beginning of a long reason is shown">cut<//>`}` },
    { key: "messages", title: "Messages", width: "5rem", align: "right", render: (group) => number(group.messages) },
    actionsColumn((group) => html`
      <a class="button" href=${hrefWith({ ...state, header: headerOf(group) }, "queues", vhost, queue, "messages")} onClick=${() => close(null)} data-test="browse-reason">Browse</a>
      <${Permitted} to="read" vhost=${vhost} name=${queue} what="A redrive" isInRow=${true}>
        <button type="button" disabled=${!isExact(group)} onClick=${() => close(group)} data-test="redrive-reason">Redrive\u2026</button><//>`),
  ];
  return html`
    <${Table} columns=${columns} rows=${groups} rowKey=${({ given_reason: reason, cut }) => JSON.stringify([reason, cut])}
      label="Messages by reason" empty="No message has a reason that its consumer gave." test="reasons" />
    <p class="muted" data-test="reasons-rest">
      ${other > 0 && `${count(other, "message")} with other reasons. `}${`${count(without, "message")} without a reason. `}
      ${!complete && `Counted over the first ${count(scanned, "message")} of ${number(total)} only.`}</p>`;
}
