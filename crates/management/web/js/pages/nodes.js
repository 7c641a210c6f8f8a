// The nodes of the cluster, those that cannot be reached included.

import { path } from "../api.js";
import { Page } from "../components.js";
import { html } from "../html.js";
import { usePolled } from "../poll.js";
import { ListTable } from "../table.js";
import { NODES } from "./overview.js";

export default function Nodes() {
  const polled = usePolled(path("nodes"));
  return html`<${Page} title="Nodes" test="nodes">
    <${ListTable} id="nodes" polled=${polled} columns=${NODES} rowKey=${(node) => node.name} noun="node" /><//>`;
}
