// The alert rules of Prometheus for one queue, to be copied.

import { Dialog, openDialog } from "../dialog.js";
import { note } from "../errors.js";
import { NumberField, useForm } from "../forms.js";
import { html, useRef } from "../html.js";
import { DocsLink } from "./help.js";

/** Characters that YAML does not allow as they are, beside those that JSON escapes. */
const UNPRINTABLE = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g;

/** A name as a string of PromQL, which has the escapes of JSON. */
const promText = (text) => JSON.stringify(text).replace(UNPRINTABLE, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** A line as a single-quoted text of YAML. */
const yamlText = (text) => `'${text.replaceAll("'", "''")}'`;

const rule = ({ alert, expr, minutes, severity, summary, description }) => `      - alert: ${alert}
        expr: ${yamlText(expr)}
${minutes === null ? "" : `        for: ${minutes}m\n`}        labels:
          severity: ${severity}
        annotations:
          summary: ${yamlText(summary)}
          description: ${yamlText(description)}
`;

/**
 * A file of rules for a queue: too many messages wait, the oldest waits too long, dead letters are lost. Annotations take
 * the names from the labels, because Prometheus reads them as templates.
 */
export function alertRules({ vhost, name, messages, seconds, minutes }) {
  const of = `vhost=${promText(vhost)},queue=${promText(name)}`;
  const where = "{{ $labels.vhost }}/{{ $labels.queue }}";
  return `groups:
  - name: ${yamlText(`leveret-queue ${promText(vhost)} ${promText(name)}`)}
    rules:
${rule({ alert: "LeveretQueueMessagesWait", expr: `rabbitmq_detailed_queue_messages_ready{${of}} > ${messages}`, minutes, severity: "warning",
    summary: `Messages wait in ${where}`, description: "{{ $value }} messages wait for a consumer." })}${
  rule({ alert: "LeveretQueueOldestMessageWaits", expr: `rabbitmq_detailed_queue_oldest_message_age_seconds{${of}} > ${seconds}`, minutes, severity: "warning",
    summary: `The oldest message in ${where} waits too long`, description: "It waits for {{ $value | humanizeDuration }}." })}${
  rule({ alert: "LeveretQueueLosesDeadLetters", expr: `sum by (vhost, queue) (increase(rabbitmq_detailed_queue_messages_dropped_total{${of},cause!="no_dead_letter_exchange"}[5m])) > 0`, minutes: null, severity: "critical",
    summary: `Dead letters of ${where} are lost`, description: "{{ $value }} messages died, and no queue accepted their dead letters." })}`;
}

/** Puts the text of a field into the clipboard, which pages without TLS reach by a selection only. */
async function copy(field) {
  const isCopied = await navigator.clipboard?.writeText(field.value).then(() => true, () => false);
  field.select();
  note(isCopied || document.execCommand("copy") ? "Copied." : "The browser does not copy. The text is selected: copy it by hand.");
}

const START = { messages: "1000", seconds: "600", minutes: "5" };

function Rules({ vhost, name, close }) {
  const form = useForm(START);
  const field = useRef(null);
  const number = (key) => Math.max(0, Number(form.values[key]) || 0);
  const text = alertRules({ vhost, name, messages: number("messages"), seconds: number("seconds"), minutes: number("minutes") });
  return html`<${Dialog} title="Alert rules for this queue" onClose=${close} isWide=${true} test="alert-rules">
    <div class="fields">
      <${NumberField} label="Messages that wait" hint="more than" ...${form.bind("messages")} data-test="rule-messages" />
      <${NumberField} label="Age of the oldest" hint="more seconds than" ...${form.bind("seconds")} data-test="rule-seconds" />
      <${NumberField} label="Alert after" hint="minutes" ...${form.bind("minutes")} data-test="rule-minutes" />
    </div>
    <textarea class="rules" rows="18" readonly spellcheck=${false} aria-label="Rules of Prometheus" ref=${field} value=${text} data-test="rule-text"></textarea>
    <p class="muted">A file for <code>rule_files</code> of Prometheus. It needs the metrics of each queue, from <code>/metrics/detailed</code> with the families
      queue_coarse_metrics, queue_time_metrics and queue_death_metrics: <${DocsLink} docs="guides/monitor-with-grafana#scrape-the-broker">Scrape the broker<//></p>
    <div class="actions"><button type="button" onClick=${close} data-cancel>Close</button>
      <button type="button" class="primary" onClick=${() => copy(field.current)} data-test="copy-rules">Copy</button></div>
  <//>`;
}

/** Opens the dialog. */
export const openAlertRules = ({ vhost, name }) => openDialog((close) => html`<${Rules} vhost=${vhost} name=${name} close=${() => close()} />`);
