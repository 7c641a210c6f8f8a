// The bindings of a queue.

import { path } from "../../api.js";
import { html } from "../../html.js";
import { AddBinding, Bindings } from "../../parts/bindings.js";
import { usePolled } from "../../poll.js";

export default function QueueBindings({ vhost, name }) {
  const polled = usePolled(path("queues", vhost, name, "bindings"));
  return html`<${Bindings} title="Bindings to this queue" polled=${polled} test="queue-bindings" />
    <${AddBinding} vhost=${vhost} name=${name} isQueue=${true} onAdded=${polled.refresh} />`;
}
