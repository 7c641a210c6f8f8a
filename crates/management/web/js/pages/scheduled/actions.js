// What can be done with scheduled messages, and the questions before it.

import { del, get, path, post, put, withQuery } from "../../api.js";
import { Dialog, TypedField, confirm, openDialog } from "../../dialog.js";
import { attempt, note } from "../../errors.js";
import { ActionForm, TextField, useForm } from "../../forms.js";
import { count, moment, visible } from "../../format.js";
import { html, useEffect, useState } from "../../html.js";
import { localTime, timeOf } from "./filters.js";

/** From so many messages on, a word is typed before they are cancelled. */
const TYPED_FROM = 10_000;

/** One message: by its number, because several may have the same id. */
const pathOf = (row, ...rest) => withQuery(path("scheduled", row.vhost, row.target_kind, row.target_name, String(row.handle), ...rest), { by: "handle" });

const nameOf = (row) => `${row.id === null ? `no. ${row.handle}` : visible(row.id)} in ${row.target_kind} ${visible(row.target_name)}`;

export async function askCancel(row, refresh) {
  const text = `The message ${nameOf(row)}, due at ${moment(row.delivery_time)}, is removed and not delivered.`;
  if (!await confirm({ title: "Cancel this message?", text, action: "Remove the message" })) return;
  if (await attempt("Cancelling", () => del(pathOf(row)), "Message cancelled.")) refresh();
}

export async function askDeliver(row, refresh) {
  const does = row.target_kind === "queue" ? "is ready in the queue" : "is routed";
  const text = `The message ${nameOf(row)} ${does} at once, not at ${moment(row.delivery_time)}.`;
  if (!await confirm({ title: "Deliver this message now?", text, action: "Deliver", isDangerous: false })) return;
  if (await attempt("Delivering", () => post(pathOf(row, "deliver")), "Message delivered.")) refresh();
}

const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A duration as "90s" in milliseconds; undefined if the text is none. */
export function durationOf(text) {
  const [, amount, unit] = /^(\d{1,12})\s*(ms|s|m|h|d)$/.exec(text.trim()) ?? [];
  return amount && Number(amount) * UNITS[unit];
}

function Reschedule({ row, close, onDone }) {
  const form = useForm({ delay: "", time: localTime(row.delivery_time) });
  const { delay, time } = form.values;
  const submit = async () => {
    const body = delay === "" ? { delivery_time: Number(timeOf(time)) } : { delay: durationOf(delay) };
    if (delay !== "" && body.delay === undefined) throw new Error("A delay is a number with ms, s, m, h or d, as 90s.");
    const done = await put(pathOf(row), body);
    note(`Message rescheduled for ${moment(done.delivery_time)}.`);
    close();
    onDone();
  };
  return html`<${Dialog} title="Reschedule this message" onClose=${() => close()} test="reschedule-dialog">
    <p class="dialog-text">${nameOf(row)}, due at ${moment(row.delivery_time)}.</p>
    <${ActionForm} onSubmit=${submit} action="Reschedule" onCancel=${() => close()} isReady=${delay !== "" || time !== ""}>
      <${TextField} label="Delay from now" placeholder="10m" hint="A number with ms, s, m, h or d. Empty: the time below." ...${form.bind("delay")} />
      <${TextField} label="Delivery time" type="datetime-local" step="1" disabled=${delay !== ""} hint="In the time zone of this browser." ...${form.bind("time")} />
    <//><//>`;
}

export const askReschedule = (row, refresh) => openDialog((close) => html`<${Reschedule} row=${row} close=${close} onDone=${refresh} />`);

/** The vhosts that a change is about: the chosen one, or all in which the user has permissions. */
async function vhostsOf(vhost) {
  if (vhost !== "") return [vhost];
  const { permissions = [] } = await get(path("whoami"));
  return permissions.map((one) => one.vhost);
}

/** All messages that match, counted before they are cancelled. */
export function CancelAll({ vhost, filter, close, onDone }) {
  const [counted, setCounted] = useState(null);
  const [problem, setProblem] = useState(null);
  const [word, setWord] = useState("");
  const query = filter.isFiltered ? filter.query : { after: "0" };
  useEffect(() => {
    get(path("scheduled-counts", ...(vhost === "" ? [] : [vhost])), query).then(setCounted, setProblem);
  }, []);
  const where = vhost === "" ? "all virtual hosts" : `virtual host ${visible(vhost)}`;
  const isLarge = counted !== null && (counted.messages >= TYPED_FROM || !counted.complete);
  const typed = isLarge ? "cancel" : "";
  const submit = async () => {
    let cancelled = 0;
    let refused = 0;
    for (const one of await vhostsOf(vhost)) {
      let done;
      do {
        done = await del(path("scheduled", one), query);
        cancelled += done.cancelled;
        refused = Math.max(refused, done.refused);
      } while (!done.complete && done.cancelled > 0);
    }
    note(`${count(cancelled, "message")} cancelled.${refused > 0 ? ` ${count(refused, "message")} stayed for lack of permission.` : ""}`);
    close();
    onDone();
  };
  return html`<${Dialog} title=${filter.isFiltered ? "Cancel all that match?" : "Cancel all scheduled messages?"} onClose=${() => close()} isDangerous=${true} test="cancel-all-dialog">
    <p class="dialog-text" data-test="cancel-count" aria-busy=${!counted && !problem}>${problem
      ? problem.message
      : counted ? `${counted.complete ? "" : "More than "}${count(counted.messages, "message")} in ${where} ${counted.messages === 1 ? "is" : "are"} removed and not delivered.` : "Counting\u2026"}</p>
    <${ActionForm} onSubmit=${submit} action=${counted?.complete ? `Remove ${count(counted.messages, "message")}` : "Remove all"} isDangerous=${true} onCancel=${() => close()}
        isReady=${counted !== null && counted.messages > 0 && word === typed} test="cancel-all-form">
      ${typed && html`<${TypedField} typed=${typed} word=${word} onInput=${setWord} />`}
    <//><//>`;
}
