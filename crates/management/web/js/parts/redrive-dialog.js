// The dialog for a redrive: target, filter, rate, and the result before it is done.

import { path, post } from "../api.js";
import { useBack } from "../away.js";
import { QueueLink, Waiting } from "../components.js";
import { Dialog, openDialog } from "../dialog.js";
import { count, duration, number } from "../format.js";
import { ActionForm, CheckField, NumberField, TextField, useForm } from "../forms.js";
import { html, useEffect, useLayoutEffect, useState } from "../html.js";
import { go, href } from "../router.js";
import { FilterFields, fieldsOf } from "./message-filter.js";

const TARGETS = [
  ["origin", "the queue where each message died last"],
  ["first", "the queue where each message died first"],
  ["queue", "one queue"],
  ["exchange", "an exchange"],
];
const SETTLED_MS = 350;

/** From so many messages on a rate is proposed: their queue has consumers, and what they call. */
const MANY = 1000;
const PROPOSED_RATE = 500;

const START = {
  to: "origin", target: "", exchange: "", routing_key: "",
  older: "", limit: "", rate: "", max: "", kept: false,
};

/**
 * Opens the dialog; true if a redrive was begun, whose page is shown then. `ids` are messages of `browse`, or null for
 * all that pass the filter. `isMove` is for messages that have not died: they have no origin to return to. `isKept` is for
 * the dead letters that the queue keeps.
 */
export async function openRedrive({ vhost, queue, ids = null, filter = {}, isMove = false, isKept = false }) {
  const job = await openDialog((close) => html`<${Redrive} ...${{ vhost, queue, ids, filter, isMove, isKept, close }} />`);
  if (!job) return false;
  go(href("redrives", job.id));
  return true;
}

const whole = (text) => (text === "" ? undefined : Number(text));
const some = (table) => (Object.values(table).some((value) => value !== undefined) ? table : undefined);

/** What is sent to the server for the values of the form. */
export function requestOf(values, ids) {
  const headerOf = (text) => {
    const [header, value] = text.split(/=(.*)/s);
    return header ? { [header]: value ?? null } : undefined;
  };
  const to = values.to === "queue" ? { queue: values.target }
    : values.to === "exchange" ? { exchange: values.exchange, ...(values.routing_key !== "" && { routing_key: values.routing_key }) }
    : values.to;
  return {
    to,
    ids: ids ?? undefined,
    filter: ids ? undefined : some({
      reason: values.reason || undefined,
      first_queue: values.first_queue || undefined,
      headers: headerOf(values.header),
      text: values.text || undefined,
      without_headers: headerOf(values.without_header),
      without_text: values.without_text || undefined,
      json: headerOf(values.json),
      older_than_ms: values.older === "" ? undefined : Math.round(Number(values.older) * 1000),
    }),
    limit: whole(values.limit),
    rate: whole(values.rate),
    max_redrives: whole(values.max),
    kept: values.kept || undefined,
  };
}

function Redrive({ vhost, queue, ids, filter, isMove, isKept, close }) {
  const form = useForm({
    ...START, ...fieldsOf(filter), to: isMove ? "queue" : START.to, kept: isKept,
  });
  const { values } = form;
  const url = path("queues", vhost, queue, "redrive");
  const request = requestOf(values, ids);
  const isComplete = values.to !== "queue" || values.target !== "";
  // How fast they go changes nothing about which they are.
  const trial = useTrial(url, { ...request, rate: undefined }, isComplete);
  const proposal = useProposedRate(form, trial.result?.would_move);
  const word = isMove ? "Move" : "Redrive";
  const submit = async () => close(await post(url, request));
  return html`<${Dialog} title=${`${word} from ${queue}`} onClose=${() => close(null)} isWide=${true} test="redrive-dialog">
    <${ActionForm} onSubmit=${submit} onCancel=${() => close(null)} needsLook=${true} test="redrive-form"
      action=${trial.result?.would_move > 0 ? `${word} ${count(trial.result.would_move, "message")}` : word}>
      <fieldset class="is-wide targets"><legend>${ids ? `Send ${count(ids.length, "selected message")} to` : "Send messages to"}</legend>
        ${TARGETS.map(([key, title]) => html`<label class="check" key=${key}><input type="radio" name="to" value=${key} checked=${values.to === key}
          onInput=${() => form.set({ to: key })} data-test=${`to-${key}`} /><span>${title}</span></label>`)}</fieldset>
      ${values.to === "queue" && html`<${TextField} label="Queue" required ...${form.bind("target")} data-test="target-queue" />`}
      ${values.to === "exchange" && html`<${TextField} label="Exchange" hint="Empty: the default exchange" ...${form.bind("exchange")} data-test="target-exchange" />
        <${TextField} label="Routing key" hint="Empty: the routing key before the death" ...${form.bind("routing_key")} />`}
      ${!ids && html`
        <${FilterFields} form=${form} />
        <${NumberField} label="Minimum age" hint="seconds in this queue" step="any" ...${form.bind("older")} />
        <${CheckField} label="Kept dead letters" hint="that the queue keeps until a target takes them (at-least-once), instead of messages that wait" ...${form.bind("kept")} data-test="kept" />`}
      <${NumberField} label="Limit" hint="messages" min="1" ...${form.bind("limit")} />
      <${NumberField} label="Rate" hint="messages per second" min="1" ...${form.bind("rate")} onInput=${proposal.choose} />
      <${NumberField} label="Skip if redriven" hint="N times or more" min="1" ...${form.bind("max")} />
      ${proposal.isProposed && html`<p class="is-wide banner trial-rate" data-test="rate-proposed"><span>More than ${number(MANY)} messages at once may be more than their consumers can take. A rate of ${number(PROPOSED_RATE)} messages per second
        is proposed: the redrive takes ${duration(Math.ceil(trial.result.would_move / PROPOSED_RATE) * 1000)}.</span>
        <button type="button" onClick=${() => proposal.choose("")} data-test="rate-none">No rate limit</button></p>`}
      <div class="is-wide"><${Trial} vhost=${vhost} trial=${trial} isComplete=${isComplete} /></div>
    <//>
  <//>`;
}

/** A rate for many messages, until the user has chosen one: `{ isProposed, choose }`. */
function useProposedRate(form, messages = 0) {
  const [isChosen, setIsChosen] = useState(false);
  const isProposed = !isChosen && messages > MANY;
  // At once, so that no rate is typed between the proposal's picture and its value.
  useLayoutEffect(() => {
    if (!isChosen) form.set({ rate: isProposed ? String(PROPOSED_RATE) : "" });
  }, [isProposed]);
  const choose = (rate) => {
    setIsChosen(true);
    form.set({ rate });
  };
  return { isProposed, choose };
}

/** The dry run, repeated a moment after the last change: `{ result, error, isAsking }`. */
function useTrial(url, request, isComplete) {
  const [state, setState] = useState({ result: null, error: null, isAsking: true });
  const body = JSON.stringify(request);
  const [tries, setTries] = useState(0);
  useBack(() => setTries((count) => count + 1));
  useEffect(() => {
    if (!isComplete) return undefined;
    const abort = new AbortController();
    setState((old) => ({ ...old, isAsking: true }));
    const timer = setTimeout(() => {
      post(url, { ...request, dry_run: true }, { signal: abort.signal, isDryRun: true }).then(
        (result) => setState({ result, error: null, isAsking: false }),
        (error) => !abort.signal.aborted && setState({ result: null, error: error.isAway ? null : error, isAsking: false }),
      );
    }, SETTLED_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [url, body, isComplete, tries]);
  return state;
}

function Trial({ vhost, trial: { result, error, isAsking }, isComplete }) {
  if (!isComplete) return html`<p class="trial muted">Enter the name of a queue.</p>`;
  if (error) return html`<p class="trial form-error" data-test="trial-error">${error.message}</p>`;
  if (!result) return html`<p class="trial muted" aria-busy="true"><${Waiting} text="Counting\u2026" /></p>`;
  const { matched, would_move: moved, unroutable, no_origin: homeless, not_examined: rest, targets = [], complete, scanned } = result;
  return html`<div class=${isAsking ? "trial is-stale" : "trial"} role="status" data-test="trial">
    <p><b>${number(moved)}</b> of ${count(matched, "matching message")} would go${targets.length > 0 ? " to:" : "."}</p>
    ${targets.length > 0 && html`<ul>${targets.map((target) => html`<li key=${target.queue}>
      <b>${number(target.messages)}</b> <${QueueLink} vhost=${vhost} name=${target.queue} /></li>`)}</ul>`}
    ${complete === false && html`<p class="muted">Counted over the first ${count(scanned, "message")} only; ${number(rest)} more are not counted.</p>`}
    ${complete && rest > 0 && html`<p class="muted" data-test="beyond-limit">${count(rest, "more message")} ${rest === 1 ? "is" : "are"} beyond the limit.</p>`}
    ${homeless > 0 && html`<p class="trial-bad" data-test="no-origin">\u26a0 ${number(homeless)} ${homeless === 1 ? "has" : "have"} no origin and will stay here: not dead-lettered since the publish or the last redrive. Choose a queue or an exchange as the target.</p>`}
    ${unroutable > 0 && html`<p class="trial-bad" data-test="unroutable">\u26a0 ${number(unroutable)} would reach no queue and will stay here.</p>`}
  </div>`;
}
