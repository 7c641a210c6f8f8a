// Permissions and topic permissions, of one user in all vhosts or in one vhost of all users.

import { del, path, put } from "../api.js";
import { Card, UserLink } from "../components.js";
import { confirm, Dialog, openDialog } from "../dialog.js";
import { attempt } from "../errors.js";
import { ActionForm, Field, TextField, useForm } from "../forms.js";
import { html, useRef } from "../html.js";
import { usePolled } from "../poll.js";
import { href } from "../router.js";
import { PagedTable } from "../table.js";
import { actionsColumn } from "./columns.js";

const LISTS_MS = 60_000;
const PRESETS = [["Everything", ".*"], ["Nothing", "^$"]];

/** What each pattern is for. */
const PATTERNS = {
  configure: "Declare and delete queues and exchanges whose names match.",
  write: "Publish, and bind to a queue or exchange.",
  read: "Consume, get and purge, and bind from an exchange.",
};
const TOPIC_PATTERNS = {
  write: "Routing keys allowed for publishing.",
  read: "Routing keys allowed for bindings.",
};

const KINDS = {
  permissions: {
    title: "Permissions", patterns: PATTERNS, test: "permissions",
    text: "Regular expressions, searched in names. Without an entry, the user has no access to the vhost.",
    pathOf: ({ vhost, user }) => path("permissions", vhost, user),
    send: (row) => put(path("permissions", row.vhost, row.user), { configure: row.configure, write: row.write, read: row.read }),
  },
  "topic-permissions": {
    title: "Topic permissions", patterns: TOPIC_PATTERNS, test: "topic-permissions",
    text: "Limits the routing keys on a topic exchange; {username} and {vhost} stand for the names. Exchanges without an entry are not limited.",
    pathOf: ({ vhost, user, exchange }) => path("topic-permissions", vhost, user, exchange || "amq.default"),
    send: (row) => put(path("topic-permissions", row.vhost, row.user), { exchange: row.exchange, write: row.write, read: row.read }),
  },
};

/** Names to choose from, or to type when there are many. */
function NameField({ label, url, list, isShown = () => true, ...rest }) {
  const { data } = usePolled(url, LISTS_MS);
  const items = (Array.isArray(data) ? data : data?.items ?? []).filter(isShown);
  return html`<${TextField} label=${label} list=${list} required ...${rest} />
    <datalist id=${list}>${items.map(({ name }) => name && html`<option key=${name} value=${name}></option>`)}</datalist>`;
}

const PatternField = ({ label, hint, value, onInput, ...rest }) => html`<div class="field is-wide">
  <${TextField} label=${label} hint=${hint} value=${value} onInput=${onInput} ...${rest} />
  <p class="hints">${PRESETS.map(([title, pattern]) => html`<button type="button" class="hint" key=${pattern} aria-pressed=${value === pattern}
    title=${pattern} onClick=${() => onInput(pattern)}>${title}</button>`)}</p></div>`;

function Editor({ kind, row, isNew, by, close }) {
  const { title, patterns, send } = KINDS[kind];
  const form = useForm(row);
  const save = async () => {
    await send(form.values);
    close(true);
  };
  const names = (of) => `${path(of)}?page=1&page_size=100&columns=name&disable_stats=true`;
  const isFor = by === "user" ? form.values.vhost : form.values.user;
  return html`<${Dialog} title=${isNew ? `Set ${title.toLowerCase()}` : `${title} of ${row.user} in ${row.vhost}`} onClose=${() => close(false)} test="access-dialog">
    <${ActionForm} onSubmit=${save} action="Save" done=${`${title} set for ${isFor}.`} onCancel=${() => close(false)}>
      ${isNew && by === "user" && html`<${NameField} label="Vhost" ...${form.bind("vhost")} url=${names("vhosts")} list="access-vhosts" data-test="access-vhost" />`}
      ${isNew && by === "vhost" && html`<${NameField} label="User" ...${form.bind("user")} url=${names("users")} list="access-users" data-test="access-user" />`}
      ${kind === "topic-permissions" && isNew && html`<${NameField} label="Exchange" ...${form.bind("exchange")}
        url=${form.values.vhost && `${path("exchanges", form.values.vhost)}?page=1&page_size=500&columns=name,type&disable_stats=true`} list="access-exchanges" isShown=${({ type }) => type === "topic"} hint="Topic exchanges of the vhost are proposed." data-test="access-exchange" />`}
      ${kind === "topic-permissions" && !isNew && html`<${Field} label="Exchange" isWide=${true}><output>${row.exchange}</output><//>`}
      ${Object.entries(patterns).map(([name, hint]) => html`<${PatternField} key=${name} label=${name} hint=${hint} ...${form.bind(name)} data-test=${`access-${name}`} />`)}
    <//>
  <//>`;
}

/** The entries of a kind, for `by` "user" or "vhost" with this name; each can be changed. */
function Access({ kind, by, name }) {
  const { title, text, patterns, pathOf, test } = KINDS[kind];
  const again = useRef(null);
  const edit = async (row, isNew) => {
    const isDone = await openDialog((close) => html`<${Editor} kind=${kind} row=${row} isNew=${isNew} by=${by} close=${close} />`);
    if (isDone) again.current?.();
  };
  const add = () => {
    const all = Object.fromEntries(Object.keys(patterns).map((key) => [key, ".*"]));
    edit({ user: "", vhost: "", ...all, ...(kind === "topic-permissions" && { exchange: "amq.topic" }), [by]: name }, true);
  };
  const remove = async (row) => {
    const whose = `${row.user} in ${row.vhost}${row.exchange === undefined ? "" : `, exchange ${row.exchange}`}`;
    const what = kind === "permissions" ? "The connections of the user stay open, but every operation in the vhost is refused." : "All routing keys of the exchange are allowed then.";
    if (!(await confirm({ title: `Remove these ${title.toLowerCase()}?`, text: `${whose}. ${what}`, action: "Remove" }))) return;
    if (await attempt(`${title} were not removed`, () => del(pathOf(row)), `${title} removed.`)) again.current?.();
  };
  const columns = [
    by === "user"
      ? { key: "vhost", title: "Vhost", sort: "vhost", width: "10rem", render: ({ vhost }) => html`<a href=${href("admin", "vhosts", vhost)} title=${vhost}>${vhost}</a>` }
      : { key: "user", title: "User", sort: "user", width: "10rem", render: ({ user }) => html`<${UserLink} name=${user} />` },
    ...(kind === "topic-permissions" ? [{ key: "exchange", title: "Exchange", sort: "exchange", width: "10rem", render: ({ exchange }) => exchange }] : []),
    ...Object.keys(patterns).map((key) => ({ key, title: key, render: (row) => (row[key] === "" ? html`<span class="muted">(empty)</span>` : html`<code title=${row[key]}>${row[key]}</code>`) })),
    actionsColumn((row) => html`
      <button type="button" class="quiet" onClick=${() => edit(row, false)} data-test="edit">Change</button>
      <button type="button" class="quiet" onClick=${() => remove(row)} data-test="remove">Remove</button>`),
  ];
  return html`<${Card} title=${title} isWide=${true} test=${test} actions=${html`<button type="button" onClick=${add} data-test="add">Add</button>`}>
    <p class="muted">${text}</p>
    <${PagedTable} id=${`${test}-by-${by}`} url=${path(by === "user" ? "users" : "vhosts", name, kind)} again=${again} columns=${columns} rowKey=${(row) => `${row.vhost}/${row.user}/${row.exchange ?? ""}`} noun="entry" hasFilter="many" isInAddress=${false} defaultSort=${{ key: by === "user" ? "vhost" : "user" }} empty="None." />
  <//>`;
}

/** The permissions of a user (`by` is "user") or in a vhost ("vhost"). */
export const Permissions = ({ by, name }) => html`<${Access} kind="permissions" by=${by} name=${name} />`;
/** The topic permissions of a user or in a vhost. */
export const TopicPermissions = ({ by, name }) => html`<${Access} kind="topic-permissions" by=${by} name=${name} />`;
