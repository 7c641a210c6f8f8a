// The consumers of a queue.

import { Card, Facts } from "../../components.js";
import { percent } from "../../format.js";
import { html } from "../../html.js";
import { Consumers } from "../../parts/consumers.js";

export default function QueueConsumers({ queue }) {
  const { consumer_details: rows = [], single_active_consumer_tag: single, exclusive_consumer_tag: exclusive } = queue;
  return html`<${Card} title="Consumers" test="consumers">
    <${Facts} items=${[
      ["Ready for a message", queue.consumers > 0 ? (queue.consumer_capacity > 0 ? "yes" : "no: consumers are at their prefetch limit") : undefined],
      ["Consumer capacity", queue.consumer_capacity > 0 && queue.consumer_capacity < 1 ? percent(queue.consumer_capacity) : undefined],
      ["Single active consumer", single],
      ["Exclusive consumer", exclusive],
    ]} />
    <${Consumers} rows=${rows} isOfQueue=${true} /><//>`;
}
