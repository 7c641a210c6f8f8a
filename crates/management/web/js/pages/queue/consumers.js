// The consumers of a queue.

import { Card, Facts } from "../../components.js";
import { percent } from "../../format.js";
import { html } from "../../html.js";
import { Consumers } from "../../parts/consumers.js";

export default function QueueConsumers({ queue }) {
  const { consumer_details: rows = [], single_active_consumer_tag: single, exclusive_consumer_tag: exclusive } = queue;
  return html`<${Card} title="Consumers" test="consumers">
    <${Facts} items=${[
      ["Consumer capacity", queue.consumers > 0 ? html`<span data-test="capacity" title="Share of time in which a consumer could take a message at once">
        ${percent(queue.consumer_capacity)}${queue.consumer_capacity < 0.5 && ": consumers are at their prefetch limit"}</span>` : undefined],
      ["Single active consumer", single],
      ["Exclusive consumer", exclusive],
    ]} />
    <${Consumers} rows=${rows} isOfQueue=${true} /><//>`;
}
