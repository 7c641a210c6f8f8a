// The buttons that discard the samples behind rates and charts.

import { del, get, path } from "../api.js";
import { confirm } from "../dialog.js";
import { attempt } from "../errors.js";
import { count } from "../format.js";
import { html } from "../html.js";
import { isAdministrator } from "../session.js";
import { Consequences } from "./consequences.js";

const THINGS = [["queues", "queue"], ["exchanges", "exchange"], ["connections", "connection"], ["channels", "channel"]];

/** Whose samples are discarded, what begins anew, and what stays. */
async function told() {
  const [{ object_totals: totals }, vhosts] = await Promise.all([
    get(path("overview"), { columns: "object_totals", disable_stats: true }), get(path("vhosts"), { columns: "name", disable_stats: true }),
  ]);
  const counted = THINGS.filter(([key]) => totals[key] > 0).map(([key, noun]) => count(totals[key], noun));
  return [
    html`The samples of <b>${[...counted, count(vhosts.length, "virtual host")].join(", ")}</b> and of the node are discarded`,
    "Rates are unknown until the second new sample, and charts begin there: on this page, in the HTTP API and in commands",
    "Counters, messages and metrics for Prometheus stay as they are",
  ];
}

/** Resets the statistics of a node, or of all; `onDone` is called afterwards. */
export function ResetStatistics({ node, onDone }) {
  if (!isAdministrator()) return null;
  const [title, url] = node === undefined
    ? ["Reset the statistics of all nodes?", path("reset")] : [`Reset the statistics of ${node}?`, path("reset", node)];
  const reset = async () => {
    if (!await confirm({ title, text: html`<${Consequences} load=${told} />`, action: "Reset statistics" })) return;
    if (await attempt("The statistics were not reset", () => del(url), "Statistics reset.")) onDone?.();
  };
  return html`<button type="button" onClick=${reset} data-test=${node === undefined ? "reset-all" : "reset-node"}>Reset statistics\u2026</button>`;
}
