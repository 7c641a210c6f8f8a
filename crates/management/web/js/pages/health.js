// Health checks: those that load balancers and monitors use, all at once.

import { get, path } from "../api.js";
import { away } from "../away.js";
import { Page, State } from "../components.js";
import { plain } from "../format.js";
import { html, useEffect, useState } from "../html.js";
import { FindingsCard } from "../parts/findings.js";
import { OwnCheck } from "../parts/own-check.js";
import { refreshMs } from "../settings.js";
import { useStore } from "../store.js";
import { ListTable } from "../table.js";

const CHECKS = [
  ["Nothing is wrong", ["findings"]],
  ["No alarm in the cluster", ["alarms"]],
  ["No alarm on this node", ["local-alarms"]],
  ["All virtual hosts are running", ["virtual-hosts"]],
  ["The node is in service", ["is-in-service"]],
  ["The node is ready to serve clients", ["ready-to-serve-clients"]],
  ["The connection limit of the node is not reached", ["below-node-connection-limit"]],
  ["The node listens for AMQP clients", ["protocol-listener", "amqp"]],
  ["The node listens for HTTP clients", ["protocol-listener", "http"]],
  ["No certificate expires within a month", ["certificate-expiration", "1", "months"]],
  ["No quorum depends on this node", ["node-is-quorum-critical"]],
  ["All quorum queues have a leader", ["quorum-queues-without-elected-leaders", "all-vhosts"]],
  ["The metadata is loaded", ["metadata-store", "initialized"]],
].map(([title, names]) => ({ title, url: path("health", "checks", ...names) }));

const COLUMNS = [
  { key: "title", title: "Check", sort: "title", width: "12rem", render: (check) => html`<span class="wrap">${check.title}</span>` },
  { key: "state", title: "Result", width: "5rem", render: (check) => (check.isGood === undefined ? "\u2026" : html`<${State} kind=${check.isGood ? "good" : "danger"}>${check.isGood ? "passed" : "failed"}<//>`) },
  { key: "reason", title: "Reason", width: "8rem", render: (check) => html`<span class="wrap">${check.reason}</span>` },
  { key: "url", title: "Path", width: "12rem", render: (check) => html`<code class="wrap" title=${check.url}>${check.url}</code>` },
];

async function ask(check) {
  try {
    const answer = await get(check.url);
    return { ...check, isGood: true, reason: answer.reason ?? "" };
  } catch (error) {
    if (error.isAway) throw error;
    return { ...check, isGood: false, reason: plain(error.message) };
  }
}

const CHECK_MS_MIN = 5000;

export default function Health() {
  const [rows, setRows] = useState(CHECKS);
  const every = useStore(refreshMs);
  useEffect(() => {
    let isOver = false;
    const run = async () => {
      if (document.hidden || away.get()) return;
      // While the broker is away, what it said last stays.
      const answers = await Promise.all(CHECKS.map(ask)).catch(() => null);
      if (!isOver && answers) setRows(answers);
    };
    run();
    const forget = away.subscribe(run);
    const timer = every > 0 ? setInterval(run, Math.max(every, CHECK_MS_MIN)) : 0;
    return () => {
      isOver = true;
      forget();
      clearInterval(timer);
    };
  }, [every]);
  const isStale = useStore(away) !== null;
  const isKnown = rows.every((row) => row.isGood !== undefined);
  const failed = rows.filter((row) => row.isGood === false).length;
  return html`<${Page} title="Health" badges=${isKnown && (failed > 0 ? html`<${State} kind="danger">${failed} of ${rows.length} failed<//>` : html`<${State} kind="good">all checks passed<//>`)} test="health">
    <${FindingsCard} />
    <${ListTable} id="health" polled=${{ isStale }} rows=${rows} columns=${COLUMNS} rowKey=${(check) => check.url} noun="check" />
    <${OwnCheck} /><//>`;
}
