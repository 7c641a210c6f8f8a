// One queue: its state at a glance, and a tab for each side of it.

import { del, path } from "../../api.js";
import { Badge, Loaded, Page, Stat, State, Tabs } from "../../components.js";
import { Dialog, TypedField, confirm, openDialog } from "../../dialog.js";
import { attempt } from "../../errors.js";
import { bytes, compact, count, number, rateOf } from "../../format.js";
import { ActionForm, CheckField, useForm } from "../../forms.js";
import { html, useState } from "../../html.js";
import { PublishersBlocked } from "../../parts/alarm.js";
import { openAlertRules } from "../../parts/alert-rule.js";
import { Consequences, ofQueue, typedFor } from "../../parts/consequences.js";
import { DEAD_LETTERED, DROPPED, LOST, REFUSED } from "../../parts/ends.js";
import { FEATURE_LEGEND, Features, Policies } from "../../parts/features.js";
import { LegendHelp } from "../../parts/help.js";
import { LossWarnings, queueState } from "../../parts/losses.js";
import { usePlacement } from "../../parts/nodes-table.js";
import { Permitted } from "../../permissions.js";
import { usePolled } from "../../poll.js";
import { go, href } from "../../router.js";
import { Stats } from "../../stats.js";
import Bindings from "./bindings.js";
import Consumers from "./consumers.js";
import Life from "./life.js";
import Messages from "./messages.js";
import Publish from "./publish.js";
import Settings from "./settings.js";

/** A tab is a component that gets `{ vhost, name, queue, placement, refresh }`; `placement` in a cluster only. */
const TABS = [
  ["life", "Life of messages", Life],
  ["messages", "Messages", Messages],
  ["consumers", "Consumers", Consumers],
  ["bindings", "Bindings", Bindings],
  ["publish", "Publish and get", Publish],
  ["settings", "Settings", Settings],
];

function Delete({ vhost, queue, close }) {
  const form = useForm({ ifEmpty: false, ifUnused: false });
  const [word, setWord] = useState("");
  const typed = typedFor(queue.name, queue.messages);
  const submit = async () => {
    const { ifEmpty, ifUnused } = form.values;
    await del(path("queues", vhost, queue.name), { "if-empty": ifEmpty, "if-unused": ifUnused });
    close();
    go(href("queues"));
  };
  return html`<${Dialog} title=${`Delete queue ${queue.name}?`} onClose=${close} isDangerous=${true} test="confirm">
    <${Consequences} load=${() => ofQueue(vhost, queue.name)} />
    <${ActionForm} onSubmit=${submit} action="Delete" done="Queue deleted." isDangerous=${true} needsLook=${!typed} isReady=${word === typed} onCancel=${close}>
      ${typed && html`<${TypedField} typed=${typed} word=${word} onInput=${setWord} />`}
      <${CheckField} label="Only if the queue is empty" ...${form.bind("ifEmpty")} />
      <${CheckField} label="Only if the queue has no consumers" ...${form.bind("ifUnused")} />
    <//><//>`;
}

/** What a purge does to the messages of a queue. */
function purged({ messages, messages_ready: ready, messages_unacknowledged: unacked }) {
  const rest = unacked > 0 && html` <b>${count(unacked, "unacknowledged message")}</b> of ${number(messages)} ${unacked === 1 ? "stays" : "stay"}.`;
  return ready === 0 ? html`No message is ready.${rest}`
    : html`<b>${count(ready, "ready message")}</b> ${ready === 1 ? "is" : "are"} lost, not dead-lettered.${rest}`;
}

/** How messages end, as a rate and in total: label, counter of the API, test, hint. */
const END_TILES = [
  [REFUSED, "refused", "refused", "Refused per second, because the queue is full"],
  ["Expired", "expired", "expired", "Passed their TTL per second"],
  [DEAD_LETTERED, "dead_lettered", "dead-lettered", "Died here per second, and moved to another queue"],
  [DROPPED, "dropped_without_dlx", "dropped-without-dlx", "Died here per second, without a dead-letter exchange"],
  [LOST, "dead_letters_lost", "lost", "Died here per second, and no queue accepted the dead letter"],
];
const SINCE = "since the queue was declared or the broker started";

/** The numbers that are of interest on every tab. */
function Now({ queue }) {
  const { message_stats: stats = {} } = queue;
  return html`<${Stats}>
    <${Stat} label="Ready" value=${compact(queue.messages_ready)} hint=${number(queue.messages_ready)} test="ready" />
    <${Stat} label="Unacked" value=${compact(queue.messages_unacknowledged)} hint=${number(queue.messages_unacknowledged)} test="unacked" />
    <${Stat} label="Total" value=${compact(queue.messages)} hint=${number(queue.messages)} test="total" />
    <${Stat} label="Bytes" value=${bytes(queue.message_bytes)} hint=${number(queue.message_bytes)} />
    <${Stat} label="Consumers" value=${number(queue.consumers)} />
    <${Stat} label="In" value=${rateOf(stats.publish_details)} hint="Messages that arrive per second, including refused ones" test="in" />
    <${Stat} label="Delivered" value=${rateOf(stats.deliver_get_details)} />
    <${Stat} label="Acknowledged" value=${rateOf(stats.ack_details)} />
    ${END_TILES.map(([label, key, test, hint]) => html`<${Stat} key=${key} label=${label} value=${rateOf(stats[`${key}_details`])} total=${compact(stats[key] ?? 0)}
      hint=${`${hint}; ${number(stats[key] ?? 0)} ${SINCE}`} test=${test} />`)}
  <//>`;
}

function Tab({ tab, ...given }) {
  const Shown = TABS.find(([key]) => key === tab)?.[2];
  if (!Shown) return html`<p class="empty">This tab does not exist.</p>`;
  return html`<div class="loaded" data-test=${`tab-of-${tab}`}><${Shown} key=${tab} ...${given} /></div>`;
}

/** The node of the cluster that leads the queue with its vhost. */
const LeaderBadge = ({ placement: { leader, members } }) => html`<span data-test="queue-leader">
  <${Badge} kind=${leader ? "" : "danger"} title=${`Members: ${members.join(", ")}`}>${leader ? `leader ${leader}` : "no leader"}<//></span>`;

export default function Queue({ params: { vhost, name, tab = "life" } }) {
  const polled = usePolled(path("queues", vhost, name));
  const placement = usePlacement(vhost);
  const queue = polled.data;
  const purge = async () => {
    if (!await confirm({ title: `Purge queue ${name}?`, text: purged(queue), action: "Purge", typed: typedFor(name, queue.messages_ready) })) return;
    if (await attempt("Purging", () => del(path("queues", vhost, name, "contents")), "Queue purged.")) polled.refresh();
  };
  const remove = () => openDialog((close) => html`<${Delete} vhost=${vhost} queue=${queue} close=${close} />`);
  return html`<${Page} title=${name} crumbs=${[["Queues", href("queues")], [vhost]]} test="queue" polled=${polled} vhost=${vhost} gone="This queue does not exist (any more)."
      badges=${queue && html`<${Badge}>${queue.type}<//> <${Features} of=${queue} /><${LegendHelp} legend=${FEATURE_LEGEND} /> <${Policies} of=${queue} /> <${PublishersBlocked} /> ${placement && html`<${LeaderBadge} placement=${placement} />`} ${queueState(queue)[0] !== "good" && html`<${State} kind=${queueState(queue)[0]}>${queueState(queue)[1]}<//>`}`}
      actions=${queue && html`<button type="button" onClick=${() => openAlertRules({ vhost, name })} data-test="alert-rules">Alert rules\u2026</button>
        <${Permitted} to="read" vhost=${vhost} name=${name} what="A purge" test="cannot-purge"><button type="button" class="danger" onClick=${purge} data-test="purge">Purge\u2026</button><//>
        <${Permitted} to="configure" vhost=${vhost} name=${name} what="Deletion" test="cannot-delete"><button type="button" class="danger" onClick=${remove} data-test="delete">Delete\u2026</button><//>`}>
    <${Loaded} polled=${polled}>${(data) => html`
      <${LossWarnings} vhost=${vhost} queue=${data} />
      <${Now} queue=${data} />
      <${Tabs} items=${TABS.map(([key, title]) => [key, title, href("queues", vhost, name, key)])} current=${tab} />
      <${Tab} tab=${tab} vhost=${vhost} name=${name} queue=${data} placement=${placement} refresh=${polled.refresh} />`}<//>
  <//>`;
}
