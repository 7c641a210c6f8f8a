// One virtual host: its messages, settings, limits and permissions.

import { del, path, post, put } from "../../api.js";
import { useRange, withRange } from "../../chart.js";
import { isInCluster } from "../../cluster.js";
import { Badge, Card, Loaded, Page, Stat } from "../../components.js";
import { confirm } from "../../dialog.js";
import { attempt } from "../../errors.js";
import { number, rateOf } from "../../format.js";
import { ActionForm, useForm } from "../../forms.js";
import { html } from "../../html.js";
import { Permissions, TopicPermissions } from "../../parts/access.js";
import { Consequences, ofVhost } from "../../parts/consequences.js";
import { ExportImport } from "../../parts/definitions.js";
import { DEAD_LETTERED, LOST, REFUSED } from "../../parts/ends.js";
import { Limits } from "../../parts/limits.js";
import { MembersCard } from "../../parts/members.js";
import { Tracing } from "../../parts/tracing.js";
import { usePolled } from "../../poll.js";
import { go, href } from "../../router.js";
import { Stats } from "../../stats.js";
import { chosenVhost } from "../../session.js";
import { useStore } from "../../store.js";
import { MessageCharts } from "../overview.js";
import { VhostFields, vhostBody } from "./vhosts.js";

function Settings({ vhost, onDone }) {
  const form = useForm({ description: vhost.description, tags: vhost.tags.join(", "), type: vhost.default_queue_type, replicas: String(vhost.replicas ?? "") });
  const save = async () => {
    await put(path("vhosts", vhost.name), vhostBody(form.values));
    onDone();
  };
  return html`<${Card} title="Settings" test="vhost-settings">
    <${ActionForm} onSubmit=${save} action="Save" done="Vhost saved." test="vhost-form"><${VhostFields} form=${form} /><//><//>`;
}

/** Protects a vhost from deletion, or removes the protection. */
async function protect({ name, protected_from_deletion: isProtected }, onDone) {
  const at = path("vhosts", name, "deletion", "protection");
  const done = isProtected ? "Protection removed." : "Protected from deletion.";
  if (await attempt("Nothing was changed", () => (isProtected ? del(at) : post(at)), done)) onDone();
}

/** Looks at the lists of this vhost only. */
const enter = (name, to) => () => {
  chosenVhost.set(name);
  go(href(to));
};

export default function Vhost({ params: { name } }) {
  const [range, picker] = useRange();
  const polled = usePolled(withRange(path("vhosts", name), range));
  const isClustered = useStore(isInCluster);
  const remove = async () => {
    const text = html`Everything in it is lost:<${Consequences} load=${() => ofVhost(name)} />`;
    if (!(await confirm({ title: `Delete the vhost ${name}?`, text, typed: name }))) return;
    if (await attempt(`${name} was not deleted`, () => del(path("vhosts", name)), `${name} deleted.`)) go(href("admin", "vhosts"));
  };
  const vhost = polled.data;
  const badges = vhost?.protected_from_deletion && html`<${Badge} kind="accent">protected from deletion<//>`;
  return html`<${Page} title=${name} crumbs=${[["Virtual hosts", href("admin", "vhosts")]]} badges=${badges} test="page-vhost"
    polled=${polled} gone="This vhost does not exist (any more)."
    actions=${vhost && html`${picker}<button type="button" onClick=${enter(name, "queues")}>Queues</button>
      <button type="button" onClick=${enter(name, "exchanges")}>Exchanges</button>
      <button type="button" onClick=${() => protect(vhost, polled.refresh)} data-test="protect">${vhost.protected_from_deletion ? "Allow deletion" : "Protect"}</button>
      <button type="button" class="danger" onClick=${remove} data-test="delete">Delete\u2026</button>`}>
    <${Loaded} polled=${polled}>${(data) => html`
      <${Stats}>
        <${Stat} label="Ready" value=${number(data.messages_ready)} />
        <${Stat} label="Unacked" value=${number(data.messages_unacknowledged)} />
        <${Stat} label="Published" value=${rateOf(data.message_stats?.publish_details)} />
        <${Stat} label="Delivered" value=${rateOf(data.message_stats?.deliver_get_details)} />
        <${Stat} label=${REFUSED} value=${rateOf(data.message_stats?.refused_details)} hint="Messages refused by full queues per second" />
        <${Stat} label=${DEAD_LETTERED} value=${rateOf(data.message_stats?.dead_lettered_details)} />
        <${Stat} label=${LOST} value=${rateOf(data.message_stats?.dead_letters_lost_details)} hint="Dead letters per second that no queue accepted" />
      <//>
      ${isClustered && html`<${MembersCard} placement=${data} onDone=${polled.refresh} />`}
      <${MessageCharts} data=${data} url=${path("vhosts", name)} range=${range} />
      <div class="cards">
        <${Settings} key=${`${data.description}|${data.tags}|${data.default_queue_type}|${data.replicas}`} vhost=${data} onDone=${polled.refresh} />
        <div class="stack"><${Limits} of="vhost" name=${name} /><${Tracing} vhost=${data} onDone=${polled.refresh} /></div>
      </div>
      <${Permissions} by="vhost" name=${name} />
      <${TopicPermissions} by="vhost" name=${name} />
      <${ExportImport} vhost=${name} />`}<//>
  <//>`;
}
