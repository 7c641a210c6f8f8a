// The definitions as one document.

import { Page } from "../../components.js";
import { html, useState } from "../../html.js";
import { ExportImport } from "../../parts/definitions.js";
import { useVhosts } from "../../parts/vhosts.js";

const EVERYTHING = "everything";

export default function Definitions() {
  const vhosts = useVhosts() ?? [];
  // A vhost may have any name: the value says where the name begins.
  const [scope, setScope] = useState(EVERYTHING);
  const vhost = scope === EVERYTHING ? undefined : scope.slice(1);
  const picker = html`<label class="picker"><span>Of</span><select value=${scope} onInput=${(event) => setScope(event.target.value)} data-test="definitions-scope">
    <option value=${EVERYTHING} selected=${scope === EVERYTHING}>the whole broker</option>
    ${vhosts.map(({ name }) => html`<option key=${name} value=${`/${name}`} label=${`vhost ${name}`} selected=${scope === `/${name}`}>vhost ${name}</option>`)}</select></label>`;
  return html`<${Page} title="Definitions" actions=${picker} test="page-definitions">
    <p class="lead">Users, permissions, policies, exchanges, queues and bindings as one JSON document in RabbitMQ's format: to keep, or to import into another broker.</p>
    <${ExportImport} vhost=${vhost} />
  <//>`;
}
