// Findings: everything that is wrong, with links to the resources and the way to mend it.

import { path } from "../api.js";
import { Card, ConnectionLink, ExchangeLink, QueueLink } from "../components.js";
import { number } from "../format.js";
import { html } from "../html.js";
import { usePolled } from "../poll.js";
import { href } from "../router.js";
import { refreshMs } from "../settings.js";
import { useStore } from "../store.js";
import { sign } from "./warnings.js";

/** Rates change with each sample, not more often. */
const FINDINGS_MS_MIN = 5000;

/** An alarm has a bar on every page. */
const IN_THE_BAR = new Set(["memory_alarm", "disk_alarm"]);

function useFindings() {
  const every = useStore(refreshMs);
  return usePolled(path("health", "findings"), every > 0 ? Math.max(every, FINDINGS_MS_MIN) : every);
}

const KINDS = { error: "danger", warning: "warning", info: "" };

function ResourceLink({ resource: { type, vhost, name } }) {
  if (type === "queue") return html`<${QueueLink} vhost=${vhost} name=${name} />`;
  if (type === "exchange") return html`<${ExchangeLink} vhost=${vhost} name=${name} />`;
  if (type === "connection") return html`<${ConnectionLink} name=${name} />`;
  if (type === "vhost") return html`<a href=${href("admin", "vhosts", name)}>${name}</a>`;
  return name;
}

function Names({ finding: { resources, count } }) {
  if (resources.length === 0) return null;
  const more = count - resources.length;
  return html`<span class="finding-names">${resources.map((one, index) => html`<span key=${index}><${ResourceLink} resource=${one} />${one.detail && html` <span class="muted">${one.detail}</span>`}</span>`)}
    ${more > 0 && html`<span>and ${number(more)} more</span>`}</span>`;
}

function Line({ finding, isLong }) {
  return html`<li class=${`banner finding ${KINDS[finding.severity]}`} data-test="finding" data-kind=${finding.kind}>
    <span class="warning-sign" aria-hidden="true">${sign(finding.severity)}</span>
    <div><p><a href=${finding.page}>${finding.text}</a></p>
      <${Names} finding=${finding} />
      ${isLong && html`<p class="finding-mend muted">${finding.command && html`<code>${finding.command}</code>`} <a href=${`docs/${finding.docs.replace(/\.md(#|$)/, ".html$1")}`} target="_blank" rel="noopener">Documentation</a></p>`}</div></li>`;
}

/** Errors and warnings, for the top of Overview. */
export function OverviewFindings() {
  const { data } = useFindings();
  const serious = (data?.findings ?? []).filter(({ severity, kind }) => severity !== "info" && !IN_THE_BAR.has(kind));
  return serious.length > 0 && html`<ul class="findings" role="status" data-test="findings">${serious.map((finding) => html`<${Line} key=${finding.kind + finding.severity} finding=${finding} />`)}</ul>`;
}

/** All findings, each with the command that shows or mends the problem. */
export function FindingsCard() {
  const { data } = useFindings();
  if (!data) return null;
  return html`<${Card} title="Is anything wrong?" test="all-findings">
    ${data.findings.length === 0 ? html`<p>Nothing is wrong.</p>`
      : html`<ul class="findings">${data.findings.map((finding) => html`<${Line} key=${finding.kind + finding.severity} finding=${finding} isLong=${true} />`)}</ul>`}
    ${!data.includes_node && html`<p class="muted">Findings about the node need the tag monitoring.</p>`}
    <p class="muted">The same on the command line: <code>leveretctl doctor</code></p><//>`;
}
