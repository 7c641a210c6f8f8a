// Warnings of the dead-letter map, equal ones as one line with a count.

import { Badge, Card, QueueLink } from "../components.js";
import { count, number, rate } from "../format.js";
import { html } from "../html.js";
import { Warnings, kindName, sign } from "./warnings.js";

function Group({ group, warnings }) {
  const { severity, kind, queues } = group;
  const more = group.count - queues.length;
  return html`<li class=${`warning-line is-${severity}`} data-test="warning-group">
    <span class="warning-sign" aria-hidden="true">${sign(severity)}</span>
    <div><${Badge} kind=${{ error: "danger", warning: "warning" }[severity] ?? ""}>${kindName(kind)}<//>
      ${group.rate > 0 && html` <b>${rate(group.rate)}</b>`}
      <p>${group.text}</p>
      <span class="finding-names">${queues.map(({ vhost, name }, index) => html`<span key=${index}><${QueueLink} vhost=${vhost} name=${name} /></span>`)}
        ${more > 0 && html`<span>and ${number(more)} more</span>`}</span>
      ${group.total_warnings > 1 && warnings.length > 0 && html`<details class="disclosure" data-test="group-warnings"><summary>${warnings.length < group.total_warnings
        ? `${number(warnings.length)} of ${count(group.total_warnings, "warning")}; filter by name for the others` : count(group.total_warnings, "warning")}</summary>
        <${Warnings} warnings=${warnings} max=${warnings.length} /></details>`}</div></li>`;
}

/** All warnings of a map, in groups. */
export function WarningGroups({ map }) {
  const groups = map.warning_groups ?? [];
  if (groups.length === 0) return null;
  const of = ({ kind, severity }) => map.warnings.filter((warning) => warning.kind === kind && warning.severity === severity);
  return html`<${Card} test="map-warnings" title=${count(map.total_warnings, "warning")}>
    <ul class="warnings">${groups.map((group, index) => html`<${Group} key=${index} group=${group} warnings=${of(group)} />`)}</ul><//>`;
}
