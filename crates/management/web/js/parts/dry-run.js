// The effects of a policy before it is saved or deleted.

import { path, post } from "../api.js";
import { useBack } from "../away.js";
import { QueueLink, ExchangeLink } from "../components.js";
import { count, duration, noun, number } from "../format.js";
import { html, useEffect, useState } from "../html.js";
import { Value } from "./policy-keys.js";
import { useSettled } from "./settled.js";

const SHOWN_MAX = 50;

/** The answer to a dry run of `body`; throws what the server says. */
export const dryRun = (kind, vhost, name, body, options) => post(path(kind, vhost, name, "dry-run"), body, { ...options, isDryRun: true });

/**
 * The dry run of what is being typed: `{ told, error, isLoading }`. No body, no request. What was told
 * stays until something newer is told.
 */
export function useDryRun(kind, vhost, name, body) {
  const typed = body === null ? null : JSON.stringify([kind, vhost, name, body]);
  const asked = useSettled(typed);
  const [state, setState] = useState({ asked: null, told: null, error: null });
  const [tries, setTries] = useState(0);
  useBack(() => setTries((count) => count + 1));
  useEffect(() => {
    if (asked === null) {
      setState({ asked, told: null, error: null });
      return undefined;
    }
    const abort = new AbortController();
    dryRun(...JSON.parse(asked), { signal: abort.signal }).then(
      (told) => setState({ asked, told, error: null }),
      (error) => !abort.signal.aborted && !error.isAway && setState({ asked, told: null, error }),
    );
    return () => abort.abort();
  }, [asked, tries]);
  return { told: state.told, error: state.error, isLoading: state.asked !== typed };
}

/** "3", or "3 to 100" when it is not known. */
export function span(from, name) {
  const most = from[`${name}_at_most`];
  return most === undefined ? number(from[name]) : `${number(from[name])} to ${number(most)}`;
}

const most = (from, name) => from[`${name}_at_most`] ?? from[name];

/** How many messages would leave at once, at most. */
export const leaving = (told) => most(told, "messages_expired") + most(told, "messages_evicted");

const Fate = ({ kind, text }) => html`<li class=${kind}>${text}</li>`;

/** What would become of messages, in words. */
function Fates({ told }) {
  const fates = [
    ["messages_expired", "", "would expire at once"],
    ["messages_evicted", "", "would exceed the length limit and leave at once"],
    ["messages_dead_lettered", "warning", "of these would become dead letters"],
    ["messages_dropped", "danger", "of these would be lost: no dead-letter exchange"],
    ["messages_kept", "warning", "of these would be kept until a dead-letter queue has them (at-least-once)"],
  ].filter(([name]) => most(told, name) > 0);
  if (fates.length === 0) return html`<p class="dry-run-fine">No messages would leave.</p>`;
  return html`<ul class="fates" data-test="dry-run-fates">${fates.map(([name, kind, text]) => html`
    <${Fate} key=${name} kind=${kind} text=${`${span(told, name)} ${noun(most(told, name), "message")} ${text}`} />`)}</ul>`;
}

const Changes = ({ before, after }) => html`<dl class="changes">${Object.keys(after).map((key) => html`<div key=${key}>
  <dt>${key}</dt><dd><${Value} name=${key} value=${before[key]} /><span aria-label="becomes"> \u2192 </span><b><${Value} name=${key} value=${after[key]} /></b></dd></div>`)}</dl>`;

function Leaving({ queue }) {
  if (queue.deleted_in_ms !== null && queue.deleted_in_ms !== undefined) return html`the queue itself, if unused, in ${duration(queue.deleted_in_ms)}`;
  const parts = [["expired", "expire"], ["evicted", "leave"], ["dropped", "lost"], ["dead_lettered", "dead letters"], ["kept", "kept"]];
  const told = parts.filter(([name]) => most(queue, name) > 0).map(([name, word]) => `${span(queue, name)} ${word}`);
  return told.length === 0 ? html`<span class="muted">none</span>` : told.join(", ");
}

function Queues({ vhost, queues: all }) {
  // Those that lose something first: not all may be shown.
  const lost = (queue) => most(queue, "expired") + most(queue, "evicted");
  const queues = [...all].sort((a, b) => lost(b) - lost(a));
  return html`<div class="table-box" tabindex="0" role="region" aria-label="Queues that would change"><table class="dry-run-queues">
    <thead><tr><th scope="col">Queue</th><th scope="col">Setting</th><th scope="col" class="right">Messages</th><th scope="col">Would leave</th></tr></thead>
    <tbody>${queues.slice(0, SHOWN_MAX).map((queue) => html`<tr key=${queue.name}>
      <td><${QueueLink} vhost=${vhost} name=${queue.name} /></td>
      <td><${Changes} before=${queue.before} after=${queue.after} /></td>
      <td class="right" data-label="messages">${number(queue.messages)}</td>
      <td data-label="would leave"><${Leaving} queue=${queue} /></td></tr>`)}</tbody></table></div>
    ${queues.length > SHOWN_MAX && html`<p class="muted">and ${count(queues.length - SHOWN_MAX, "more queue", "more queues")}</p>`}`;
}

/** The effects of a policy in a vhost, or of its deletion (`isDelete`). */
export function Told({ vhost, told, isBrief = false, isDelete = false }) {
  const { queues_matched: matched, queues_changed: changed, exchanges_changed: exchanges } = told;
  const others = exchanges > 0 ? `, and ${count(exchanges, "exchange")}` : "";
  return html`<div class="dry-run" data-test="dry-run">
    ${isDelete
      ? html`<p>Without it <b data-test="dry-run-changed">${changed === 0 ? "no queue" : count(changed, "queue")}</b> would get other settings${others}.</p>`
      : html`<p><b data-test="dry-run-matched">${count(matched, "queue")}</b> ${matched === 1 ? "matches" : "match"} now,
        ${" "}<b data-test="dry-run-changed">${changed === 0 ? "none" : number(changed)}</b> would get other settings${others}.</p>`}
    <${Fates} told=${told} />
    ${!told.exact && html`<p class="muted">Messages on disk were not read: a range of two numbers contains the exact number.</p>`}
    ${!isBrief && told.queues.length > 0 && html`<${Queues} vhost=${vhost} queues=${told.queues} />`}
    ${!isBrief && told.exchanges.length > 0 && html`<ul class="plain">${told.exchanges.slice(0, SHOWN_MAX).map((exchange) => html`<li key=${exchange.name}>
      <${ExchangeLink} vhost=${vhost} name=${exchange.name} /> <${Changes} before=${exchange.before} after=${exchange.after} /></li>`)}</ul>`}
  </div>`;
}
