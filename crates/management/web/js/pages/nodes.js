// The nodes of the cluster, those that cannot be reached included, and the links between them.

import { path } from "../api.js";
import { Card, Page } from "../components.js";
import { html } from "../html.js";
import { LinksTable, NodesTable, useClusterNodes } from "../parts/nodes-table.js";
import { JoinButton } from "../parts/membership.js";
import { usePolled } from "../poll.js";
import { isAdministrator } from "../session.js";

export default function Nodes() {
  const polled = usePolled(path("nodes"));
  const nodes = useClusterNodes(polled);
  const { rows } = nodes;
  const join = rows?.length === 1 && isAdministrator() && html`<${JoinButton} node=${rows[0].name} />`;
  return html`<${Page} title="Nodes" test="nodes" actions=${join}>
    <${NodesTable} id="nodes" polled=${polled} nodes=${nodes} />
    ${rows?.length > 1 && html`<${Card} title="Links" test="links"><${LinksTable} nodes=${rows} /><//>`}<//>`;
}
