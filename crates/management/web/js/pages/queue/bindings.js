// The bindings of a queue.

import { path } from "../../api.js";
import { html, useRef } from "../../html.js";
import { AddBinding, Bindings } from "../../parts/bindings.js";

export default function QueueBindings({ vhost, name }) {
  const again = useRef(null);
  return html`<${Bindings} title="Bindings to this queue" url=${path("queues", vhost, name, "bindings")} again=${again} test="queue-bindings" />
    <${AddBinding} vhost=${vhost} name=${name} isQueue=${true} onAdded=${() => again.current?.()} />`;
}
