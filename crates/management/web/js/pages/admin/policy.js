// One policy, new or changed, and what it would do before it does it.

import { exchangePath, path, put } from "../../api.js";
import { Card, Loaded, Page } from "../../components.js";
import { confirm } from "../../dialog.js";
import { note } from "../../errors.js";
import { ActionForm, SelectField, TextField, useForm } from "../../forms.js";
import { html } from "../../html.js";
import { DefinitionEditor, definitionOf, rowsOfDefinition } from "../../parts/definition-editor.js";
import { dryRun, leaving, Told, useDryRun } from "../../parts/dry-run.js";
import { settingOf } from "../../parts/policy-keys.js";
import { useSettled } from "../../parts/settled.js";
import { useVhosts } from "../../parts/vhosts.js";
import { usePolled } from "../../poll.js";
import { go, href, place } from "../../router.js";
import { chosenVhost, isAdministrator, isPolicymaker } from "../../session.js";
import { removePolicy } from "./policies.js";

const NOUNS = { policies: "policy", "operator-policies": "operator policy" };
const APPLY_TO = [
  ["queues", "Queues"], ["classic_queues", "Classic queues"], ["quorum_queues", "Quorum queues"],
  ["exchanges", "Exchanges"], ["all", "Queues and exchanges"], ["streams", "Streams (not supported)"],
];
// What it is called in a dry run before it has a name.
const UNNAMED = "(new)";
const LISTS_MS = 60_000;

const EMPTY = { name: "", pattern: "", "apply-to": "queues", priority: "0", rows: [] };

/** What is sent, or throws what is missing. */
function bodyOf(values) {
  if (values.rows.length === 0) throw new Error("The definition needs at least one key.");
  const priority = values.priority.trim() === "" ? 0 : Number(values.priority);
  return {
    pattern: values.pattern,
    "apply-to": values["apply-to"],
    priority: Number.isNaN(priority) ? values.priority : priority,
    definition: definitionOf(values.rows),
  };
}

function draftOf(values) {
  try {
    return values.pattern === "" ? null : bodyOf(values);
  } catch {
    return null;
  }
}

/** Warnings about a policy that is valid but perhaps not intended. */
function warningsOf({ values, told, isChanged, vhost, missing }) {
  const all = [];
  const { pattern } = values;
  const isEverything = pattern === "" || /^\^?\.\*\$?$/.test(pattern);
  if (!isEverything && !(pattern.startsWith("^") && pattern.endsWith("$"))) {
    const [where, advice] = pattern.startsWith("^") ? ["begins with it", "Add $ at the end"]
      : pattern.endsWith("$") ? ["ends with it", "Add ^ at the beginning"] : ["contains it anywhere", "Add ^ at the beginning and $ at the end"];
    all.push(["anchor", `The pattern matches every name that ${where}. ${advice} to match the whole name only.`]);
  }
  if (told && told.queues_matched_by_pattern === told.queues_excluded && told.exchanges_changed === 0) {
    all.push(["nothing", `Nothing in ${vhost} matches now. The policy will apply to queues and exchanges declared later.`]);
  } else if (isChanged && told && told.queues_matched_by_pattern > told.queues_excluded && told.queues_changed === 0 && told.exchanges_changed === 0) {
    all.push(["idle", "The policy changes nothing now: all matches have these settings already, or another policy with a higher priority."]);
  }
  if (missing) all.push(["exchange", `The exchange ${missing} does not exist in ${vhost}: dead letters are dropped until it does.`]);
  for (const type of ["classic", "quorum"]) {
    const keys = values.rows.map(({ key }) => key).filter((key) => settingOf(key)?.keepsFrom === type);
    const isOther = values["apply-to"].endsWith("_queues") && values["apply-to"] !== `${type}_queues`;
    if (keys.length > 0 && !isOther && values["apply-to"] !== "exchanges") {
      all.push([type, `The policy does not apply to ${type} queues at all, because they do not support ${keys.join(", ")}.`]);
    }
  }
  return all;
}

function Preview({ dry, vhost, values, isChanged, missing }) {
  const { told, error, isLoading } = dry;
  const warnings = warningsOf({ values, told, isChanged, vhost, missing });
  return html`<${Card} title="Preview" test="preview">
    <div aria-live="polite" aria-busy=${isLoading}>
      ${warnings.map(([key, text]) => html`<p class="banner warning" key=${key} data-test=${`warning-${key}`}>${text}</p>`)}
      ${error && html`<p class="form-error" data-test="dry-run-error">${error.message}</p>`}
      ${!error && told && html`<${Told} vhost=${vhost} told=${told} />`}
      ${!error && !told && html`<p class="muted">Enter a pattern and a key with its value to see the effects. Nothing changes before you save.</p>`}
    </div>
  <//>`;
}

/** The name of an exchange that is not there; nothing if it is, or as long as that is not known. */
function useMissingExchange(vhost, name) {
  const settled = useSettled(name);
  const { error } = usePolled(settled ? `${exchangePath(vhost, settled)}?columns=name` : null, LISTS_MS);
  return settled && error?.status === 404 ? settled : null;
}

/** Asks before messages leave; false if the answer is no. */
async function isMeant(kind, vhost, name, body) {
  // What is wrong with it the server says when it is saved.
  const told = await dryRun(kind, vhost, name, body).catch(() => null);
  if (!told || leaving(told) === 0) return true;
  const text = html`<${Told} vhost=${vhost} told=${told} isBrief=${true} />`;
  return confirm({ title: "Messages will leave their queues", text, action: "Save anyway" });
}

function Editor({ kind, isNew, initial, mayChange }) {
  const form = useForm(initial);
  const { values } = form;
  const { vhost } = values;
  const vhosts = useVhosts() ?? [{ name: vhost }];
  const missing = useMissingExchange(vhost, values.rows.find((row) => row.key === "dead-letter-exchange")?.text);
  const dry = useDryRun(kind, vhost, values.name || UNNAMED, mayChange ? draftOf(values) : null);
  const leave = () => go(href("admin", "policies"));
  const save = async () => {
    const body = bodyOf(values);
    if (!(await isMeant(kind, vhost, values.name, body))) return;
    await put(path(kind, vhost, values.name), body);
    note(`${values.name} saved.`);
    leave();
  };
  return html`<div class="columns">
    <${Card} title="Policy">
      <${ActionForm} onSubmit=${save} action="Save" onCancel=${leave} test="policy-form">
        ${isNew && html`<${SelectField} label="Vhost" ...${form.bind("vhost")} options=${vhosts.map(({ name }) => name)} data-test="policy-vhost" />
          <${TextField} label="Name" ...${form.bind("name")} required data-test="policy-name" />`}
        <${TextField} label="Pattern" ...${form.bind("pattern")} required isWide=${true} hint="A regular expression, searched in names: ^orders\\. matches all names that begin with orders." data-test="policy-pattern" />
        <${SelectField} label="Applies to" ...${form.bind("apply-to")} options=${APPLY_TO} data-test="policy-apply-to" />
        <${TextField} label="Priority" ...${form.bind("priority")} inputmode="decimal" hint="The matching policy with the highest number applies." data-test="policy-priority" />
        <${DefinitionEditor} rows=${values.rows} onChange=${(rows) => form.set({ rows })} vhost=${vhost} isOperators=${kind === "operator-policies"} />
      <//>
    <//>
    ${mayChange && html`<${Preview} dry=${dry} vhost=${vhost} values=${values} isChanged=${values !== initial} missing=${missing} />`}
  </div>`;
}

const mayChangeOf = (kind) => (kind === "operator-policies" ? isAdministrator() : isPolicymaker());

/** A policy that is there. */
function Existing({ kind, vhost, name }) {
  const polled = usePolled(path(kind, vhost, name), 0);
  const remove = async () => (await removePolicy(kind, { vhost, name })) && go(href("admin", "policies"));
  const actions = mayChangeOf(kind) && html`<button type="button" class="danger" onClick=${remove} data-test="delete">Delete</button>`;
  return html`<${Page} title=${name} crumbs=${[["Policies", href("admin", "policies")], [`${NOUNS[kind]} in ${vhost}`]]} actions=${actions} test="page-policy"
      polled=${polled} vhost=${vhost} gone="This policy does not exist (any more).">
    <${Loaded} polled=${polled}>${(policy) => html`
      <${Editor} kind=${kind} mayChange=${mayChangeOf(kind)} initial=${{
        ...policy, priority: String(policy.priority), rows: rowsOfDefinition(policy.definition) }} />`}<//>
  <//>`;
}

/** A policy that is not there yet; the address may say what it begins with. */
function New() {
  const { query } = place.get();
  const kind = query.get("kind") === "operator-policies" ? "operator-policies" : "policies";
  const vhost = query.get("vhost") ?? (chosenVhost.get() || "/");
  const initial = { ...EMPTY, vhost, name: query.get("name") ?? "", pattern: query.get("pattern") ?? "" };
  return html`<${Page} title=${`New ${NOUNS[kind]}`} crumbs=${[["Policies", href("admin", "policies")]]} test="page-policy">
    <${Editor} kind=${kind} isNew=${true} mayChange=${mayChangeOf(kind)} initial=${initial} />
  <//>`;
}

export default function PolicyPage({ params: { kind, vhost, name } }) {
  if (name === undefined) return html`<${New} />`;
  if (!NOUNS[kind]) return html`<p class="empty">This page does not exist.</p>`;
  return html`<${Existing} kind=${kind} vhost=${vhost} name=${name} />`;
}
