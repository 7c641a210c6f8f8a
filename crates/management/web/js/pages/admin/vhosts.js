// All virtual hosts.

import { path, put } from "../../api.js";
import { isInCluster } from "../../cluster.js";
import { Badge, Page } from "../../components.js";
import { Dialog, openDialog } from "../../dialog.js";
import { DASH } from "../../format.js";
import { ActionForm, SelectField, TextField, useForm } from "../../forms.js";
import { html, useMemo } from "../../html.js";
import { byteRateColumn, numberColumn, rateColumn } from "../../parts/columns.js";
import { LOST } from "../../parts/ends.js";
import { Leader } from "../../parts/members.js";
import { usePolled } from "../../poll.js";
import { go, href } from "../../router.js";
import { isAdministrator } from "../../session.js";
import { useStore } from "../../store.js";
import { PagedTable } from "../../table.js";

/** Types to choose the default of a vhost from. */
export const QUEUE_TYPES = [["classic", "classic"], ["quorum", "quorum"]];

/** Numbers of replicas to choose from. */
const REPLICAS = [["", "all nodes"], ..."1234567".split("").map((count) => [count, count])];

/** Tags as they are typed. */
export const splitTags = (text) => text.split(",").map((tag) => tag.trim()).filter((tag) => tag !== "");

/** The inputs of a vhost, new or there. */
export const VhostFields = ({ form }) => html`
  <${TextField} label="Description" ...${form.bind("description")} isWide=${true} data-test="vhost-description" />
  <${TextField} label="Tags" ...${form.bind("tags")} hint="Separated by commas." data-test="vhost-tags" />
  <${SelectField} label="Default queue type" ...${form.bind("type")} options=${QUEUE_TYPES} hint="For durable queues that are declared without a type." data-test="vhost-type" />
  <${SelectField} label="Replicas" ...${form.bind("replicas")} options=${REPLICAS} hint="Nodes of a cluster that have the vhost." data-test="vhost-replicas" />`;

/** What is sent for these inputs. */
export const vhostBody = ({ description, tags, type, replicas }) => (
  { description, tags: splitTags(tags), default_queue_type: type, replicas: replicas === "" ? null : Number(replicas) });

function NewVhost({ close }) {
  const form = useForm({ name: "", description: "", tags: "", type: "classic", replicas: "" });
  const { values } = form;
  const save = async () => {
    await put(path("vhosts", values.name), vhostBody(values));
    close(values.name);
  };
  return html`<${Dialog} title="New virtual host" onClose=${() => close(null)} test="vhost-dialog">
    <${ActionForm} onSubmit=${save} action="Add" done=${`Vhost ${values.name} created.`} onCancel=${() => close(null)} test="vhost-form">
      <${TextField} label="Name" ...${form.bind("name")} required data-test="vhost-name" />
      <${VhostFields} form=${form} />
    <//>
    <p class="muted">Your user gets all permissions in the vhost. Other users need permissions.</p>
  <//>`;
}

const OVERVIEW = "Overview";
const MESSAGES = "Messages";
const RATES = "Message rates";
const NETWORK = "Network";

/** Where a vhost is, in a cluster. */
const PLACE = [
  { key: "leader", title: "Leader", group: OVERVIEW, sort: "leader", width: "6rem", phone: 6, render: ({ leader }) => html`<${Leader} leader=${leader} />` },
  { key: "members", title: "Members", group: OVERVIEW, width: "6rem", render: ({ members }) => html`<span title=${members.join(", ")}>${members.map((node) => node.split("@")[0]).join(", ")}</span>` },
];

const columnsOf = (usersOf, isClustered) => [
  { key: "name", title: "Name", group: OVERVIEW, sort: "name", render: ({ name, protected_from_deletion: isProtected }) => html`
    ${isAdministrator() ? html`<a href=${href("admin", "vhosts", name)} title=${name}>${name}</a>` : name}
    ${isProtected && html` <${Badge} kind="accent" title="Protected from deletion">protected<//>`}` },
  { key: "description", title: "Description", group: OVERVIEW, width: "8rem", render: ({ description }) => description },
  { key: "tags", title: "Tags", group: OVERVIEW, width: "5rem", isOptional: true, render: ({ tags }) => tags.join(", ") },
  { key: "type", title: "Default type", group: OVERVIEW, sort: "default_queue_type", width: "5rem", isOptional: true, render: (row) => row.default_queue_type },
  { key: "tracing", title: "Tracing", group: OVERVIEW, sort: "tracing", width: "4rem", render: ({ tracing }) => (tracing ? html`<${Badge} kind="warning">on<//>` : DASH) },
  ...(isClustered ? PLACE : []),
  ...(usersOf ? [{ key: "users", title: "Users", group: OVERVIEW, width: "5rem", render: ({ name }) =>
    (usersOf.get(name) ?? []).join(", ") || html`<${Badge} kind="warning" title="No user has permissions here">none<//>` }] : []),
  numberColumn("messages_ready", "Ready", "messages_ready", { group: MESSAGES, phone: 1 }),
  numberColumn("messages_unacknowledged", "Unacked", "messages_unacknowledged", { group: MESSAGES, phone: 2, name: "Unacknowledged" }),
  numberColumn("messages", "Total", "messages", { group: MESSAGES, phone: 3 }),
  rateColumn("publish", "In", "message_stats.publish", { group: RATES, phone: 4, hint: "Messages published per second" }),
  rateColumn("deliver_get", "Out", "message_stats.deliver_get", { group: RATES, phone: 5, hint: "Messages delivered per second" }),
  rateColumn("expired", "Expired", "message_stats.expired", { group: RATES, isOptional: true, hint: "Messages expired per second" }),
  rateColumn("dead_lettered", "Dead-lettered", "message_stats.dead_lettered", { group: RATES, hint: "Messages dead-lettered per second" }),
  byteRateColumn("from_clients", "From clients", "recv_oct", { group: NETWORK, width: "5.4rem", isOptional: isClustered, hint: "Bytes received from clients per second" }),
  byteRateColumn("to_clients", "To clients", "send_oct", { group: NETWORK, width: "5.4rem", isOptional: isClustered, hint: "Bytes sent to clients per second" }),
  rateColumn("refused", "Refused", "message_stats.refused", { group: RATES, isOptional: true, hint: "Messages per second that full queues refused" }),
  rateColumn("returned", "Returned", "message_stats.return_unroutable", { group: RATES, isOptional: true, hint: "Mandatory messages per second that were routed to no queue, and returned" }),
  rateColumn("unroutable", "Dropped", "message_stats.drop_unroutable", { group: RATES, isOptional: true, name: "Dropped (unroutable)", hint: "Messages per second that were routed to no queue, and dropped" }),
  rateColumn("lost", "Lost", "message_stats.dead_letters_lost", { group: RATES, isOptional: true, name: LOST, hint: "Dead letters per second that no queue accepted" }),
];

/** The users with permissions in each vhost. */
function usersByVhost(permissions) {
  const all = new Map();
  for (const { user, vhost } of permissions) all.set(vhost, [...(all.get(vhost) ?? []), user]);
  return all;
}

export default function Vhosts() {
  const permissions = usePolled(isAdministrator() ? path("permissions") : null);
  const isClustered = useStore(isInCluster);
  const columns = useMemo(() => columnsOf(permissions.data && usersByVhost(permissions.data), isClustered), [permissions.data, isClustered]);
  const add = async () => {
    const name = await openDialog((close) => html`<${NewVhost} close=${close} />`);
    if (name) go(href("admin", "vhosts", name));
  };
  const actions = isAdministrator() && html`<button type="button" class="primary" onClick=${add} data-test="add-vhost">Add a vhost</button>`;
  return html`<${Page} title="Virtual hosts" actions=${actions} test="page-vhosts">
    <${PagedTable} id="vhosts" url=${path("vhosts")} columns=${columns} rowKey=${(row) => row.name} noun="vhost" defaultSort=${{ key: "name" }} empty="Your user has no permissions in any vhost." />
  <//>`;
}
