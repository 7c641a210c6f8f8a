// The bindings of a queue.

import { path } from "../../api.js";
import { html, useRef } from "../../html.js";
import { AddBinding, Bindings } from "../../parts/bindings.js";
import { Permitted } from "../../permissions.js";

export default function QueueBindings({ vhost, name }) {
  const again = useRef(null);
  return html`<${Bindings} title="Bindings to this queue" url=${path("queues", vhost, name, "bindings")} again=${again} test="queue-bindings" />
    <${Permitted} to="write" vhost=${vhost} name=${name} what="Adding a binding" test="cannot-bind"><${AddBinding} vhost=${vhost} name=${name} isQueue=${true} onAdded=${() => again.current?.()} /><//>`;
}
