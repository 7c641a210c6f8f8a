// Who consumes from a queue.

import { Card, Facts } from "../../components.js";
import { percent } from "../../format.js";
import { html } from "../../html.js";
import { Consumers } from "../../parts/consumers.js";

export default function QueueConsumers({ queue }) {
  const { consumer_details: rows = [], single_active_consumer_tag: single, exclusive_consumer_tag: exclusive } = queue;
  return html`<${Card} title="Consumers" test="consumers">
    <${Facts} items=${[
      ["There is room for a message now", queue.consumers > 0 ? (queue.consumer_capacity > 0 ? "yes" : "no: all have what they may have") : undefined],
      ["Of the time", queue.consumer_capacity > 0 && queue.consumer_capacity < 1 ? percent(queue.consumer_capacity) : undefined],
      ["The active one", single],
      ["The only one", exclusive],
    ]} />
    <${Consumers} rows=${rows} isOfQueue=${true} /><//>`;
}
