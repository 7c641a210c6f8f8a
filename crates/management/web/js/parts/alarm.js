// The alarms that block publishers, of any node: a bar on every page, and the reason at each resource that an alarm stops.

import { path } from "../api.js";
import { State } from "../components.js";
import { html, useEffect } from "../html.js";
import { usePolled } from "../poll.js";
import { href } from "../router.js";
import { isMonitor } from "../session.js";
import { store, useStore } from "../store.js";
import { StateDot } from "./state-dot.js";

/** The alarms that are on: `{ resource, text }`; users with the tag monitoring also get `node`, `limit_bytes` and `current_bytes`. */
const alarms = store([]);

/** Keeps the alarms up to date, and shows each as a bar. */
export function AlarmBar() {
  const { data } = usePolled(path("health", "alarms"));
  useEffect(() => {
    if (data) alarms.set(data.alarms);
  }, [data]);
  return useStore(alarms).map((alarm) => html`<p class="banner danger alarm-bar" role="alert" key=${`${alarm.resource} ${alarm.node}`} data-test="alarm">
    ${alarm.text} ${isMonitor() && html`<a href=${href("nodes")}>Nodes</a>`}</p>`);
}

/** The dot at the name of the node while an alarm is on. */
export function AlarmDot() {
  const all = useStore(alarms);
  return all.length > 0 && html`<span class="state danger" role="img" aria-label="Alarm" title=${all.map(({ text }) => text).join(" ")} data-test="alarm-dot"></span>`;
}

/** The state of publishers to a queue while an alarm is on. */
export function PublishersBlocked() {
  const all = useStore(alarms);
  return all.length > 0 && html`<span title=${all.map(({ text }) => text).join(" ")} data-test="publishers-blocked"><${State} kind="danger">publishers blocked by ${named(all)}<//></span>`;
}

/** The alarms in a word: "disk alarm". */
const named = (all) => [...new Set(all.map(({ resource }) => `${resource} alarm`))].join(" and ");

/** The state of a queue in a list, `[colour, word, sentence]`: publishers to all queues are stopped while an alarm is on. */
export function useQueueState(state) {
  const all = useStore(alarms);
  const [kind, word, sentence] = state;
  if (all.length === 0) return state;
  const told = all.map(({ text }) => text).join(" ");
  return kind === "good" ? ["danger", `blocked: ${named(all)}`, told] : [kind, word, `${sentence}. ${told}`];
}

const KINDS = { running: "good", flow: "warning", blocking: "warning", blocked: "danger" };

const reasonOf = (state, all) => {
  const why = all.map(({ text }) => text.replace(/^[^:]*: /, "").replace(/\.$/, "")).join("; ") || "alarm";
  if (state === "blocked") return `This connection has published and is not read: ${why}`;
  if (state === "blocking") return `This connection is blocked as soon as a message is published: ${why}`;
  if (state === "flow") return "This connection is not read until the disk, or the client, has caught up";
  return "";
};

/** The state of a connection with its reason: as a title, or as a text behind the state. */
export function ConnectionState({ state, isLong = false }) {
  const all = useStore(alarms);
  const reason = reasonOf(state, all);
  const isStopped = all.length > 0 && (state === "blocked" || state === "blocking");
  if (isLong) return html`<${State} kind=${KINDS[state] ?? ""}>${state}<//>${reason && html`<p class="muted" data-test="connection-reason">${reason}.</p>`}`;
  return html`<span title=${reason || state} data-test="connection-state"><${StateDot} kind=${KINDS[state] ?? ""} title=${reason || state}>${isStopped ? `${state}: ${named(all)}` : state}<//></span>`;
}
