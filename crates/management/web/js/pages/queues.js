// All queues, page by page.

import { path, put } from "../api.js";
import { isInCluster } from "../cluster.js";
import { Badge, Page, QueueLink } from "../components.js";
import { Dialog, openDialog } from "../dialog.js";
import { bytes } from "../format.js";
import { ActionForm, ArgumentsEditor, CheckField, SelectField, TextField, rowsOf, tableOf, useForm } from "../forms.js";
import { html, useRef, useState } from "../html.js";
import { useQueueState } from "../parts/alarm.js";
import { columnOf } from "../parts/columns.js";
import { NO_QUEUE } from "../parts/empty.js";
import { FEATURE_LEGEND, Features, Policies } from "../parts/features.js";
import { queueState } from "../parts/losses.js";
import { Leader } from "../parts/members.js";
import { QUEUE_NUMBERS } from "../parts/queue-numbers.js";
import { SETTINGS } from "../parts/settings-table.js";
import { StateDot } from "../parts/state-dot.js";
import { VhostField, useChosenVhost, useVhostColumns } from "../parts/vhosts.js";
import { Permitted } from "../permissions.js";
import { useStore } from "../store.js";
import { PagedTable } from "../table.js";

const ARGUMENT_TYPES = { number: "number", boolean: "boolean", text: "string", choice: "string" };

/** Well-known arguments: name, type, what a button says, a value to start with. */
export const QUEUE_ARGUMENTS = SETTINGS.filter(({ button }) => button)
  .map(({ argument, type, button, example }) => [argument, ARGUMENT_TYPES[type], button, example]);

const OVERVIEW = "Overview";

/** The state of a queue, with a warning if it refuses publishes, loses dead letters, or if an alarm stops its publishers. */
function QueueState({ queue }) {
  const [kind, text, hint] = useQueueState(queueState(queue));
  return html`<span title=${hint} data-test="queue-state"><${StateDot} kind=${kind}>${text}<//></span>`;
}

// The bytes of a whole queue are not faint if there are none.
const OF_WHOLE = ["bytes", "memory"];
const ofWhole = ({ key, field }) => OF_WHOLE.includes(key) && { width: "5rem", render: (queue) => bytes(queue[field]) };
const NUMBERS = QUEUE_NUMBERS.map((number) => ({ ...columnOf(number), ...ofWhole(number) }));

const COLUMNS = [
  { key: "name", title: "Name", group: OVERVIEW, sort: "name", render: (queue) => html`<${QueueLink} vhost=${queue.vhost} name=${queue.name} />` },
  { key: "state", title: "State", group: OVERVIEW, sort: "state", phone: 10, width: "3rem", render: (queue) => html`<${QueueState} queue=${queue} />` },
  { key: "type", title: "Type", group: OVERVIEW, sort: "type", width: "3.6rem", render: (queue) => queue.type },
  { key: "features", title: "Features", legend: FEATURE_LEGEND, group: OVERVIEW, width: "5rem", render: (queue) => html`<${Features} of=${queue} />` },
  { key: "policy", title: "Policy", group: OVERVIEW, sort: "policy", width: "5rem", isOptional: true, render: (queue) => html`<${Policies} of=${queue} />` },
  ...NUMBERS,
];

const LEADER = { key: "leader", title: "Leader", group: OVERVIEW, sort: "node", width: "6rem", isOptional: true, render: (queue) => html`<${Leader} leader=${queue.node} />` };
const IN_CLUSTER = [...COLUMNS.slice(0, 3), LEADER, ...COLUMNS.slice(3)];

// What the columns need, and nothing else: a queue has a hundred fields.
const FIELDS = ["name", "vhost", "type", "durable", "auto_delete", "exclusive", "arguments", "policy", "operator_policy", "effective_policy_definition",
  "state", "node", "refuses_publishes", ...NUMBERS.map((column) => column.sort)].join(",");

function AddQueue({ close, onAdded }) {
  const form = useForm({ vhost: "", name: "", type: "default", durable: "true", autoDelete: false });
  const [rows, setRows] = useState(rowsOf());
  const add = async () => {
    const { vhost, name, type, durable, autoDelete } = form.values;
    const table = tableOf(rows);
    if (type !== "default") table["x-queue-type"] = type;
    await put(path("queues", vhost, name), { durable: durable === "true", auto_delete: autoDelete, arguments: table });
    onAdded();
    close();
  };
  return html`<${Dialog} title="Add a queue" onClose=${close} isWide=${true} test="add-queue">
    <${ActionForm} onSubmit=${add} action="Add" done="Queue created." onCancel=${close} test="add-queue-form">
      <${VhostField} ...${form.bind("vhost")} />
      <${TextField} label="Name" ...${form.bind("name")} required autofocus data-test="form-name" />
      <${SelectField} label="Type" ...${form.bind("type")} options=${[["default", "the vhost's default"], ["classic", "Classic"], ["quorum", "Quorum"]]} data-test="form-type" />
      <${SelectField} label="Durability" ...${form.bind("durable")} options=${[["true", "Durable"], ["false", "Transient"]]} />
      <${CheckField} label="Auto-delete" ...${form.bind("autoDelete")} />
      <${ArgumentsEditor} rows=${rows} onChange=${setRows} hints=${QUEUE_ARGUMENTS} test="form-arguments" />
    <//><//>`;
}

export default function Queues() {
  const vhost = useChosenVhost();
  const again = useRef(null);
  const columns = useVhostColumns(useStore(isInCluster) ? IN_CLUSTER : COLUMNS);
  const add = () => openDialog((close) => html`<${AddQueue} close=${close} onAdded=${() => again.current?.()} />`);
  return html`<${Page} title="Queues" badges=${vhost && html`<${Badge} kind="accent" title="Only of this virtual host">${vhost}<//>`} test="queues"
      actions=${html`<${Permitted} to="configure" vhost=${vhost} what="Adding a queue" test="cannot-add"><button type="button" class="primary" onClick=${add} data-test="add">Add a queue</button><//>`}>
    <${PagedTable} id="queues" url=${vhost ? path("queues", vhost) : path("queues")} query=${{ columns: FIELDS }} columns=${columns} again=${again}
      rowKey=${(queue) => `${queue.vhost}\n${queue.name}`} noun="queue" defaultSort=${{ key: "name" }} empty=${NO_QUEUE} />
  <//>`;
}
