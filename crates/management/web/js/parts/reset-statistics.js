// The buttons that discard the samples behind rates and charts.

import { del, path } from "../api.js";
import { confirm } from "../dialog.js";
import { attempt } from "../errors.js";
import { html } from "../html.js";
import { isAdministrator } from "../session.js";

const TEXT = "All samples are discarded: rates and charts start again. Counters and messages stay.";

/** Resets the statistics of a node, or of all; `onDone` is called afterwards. */
export function ResetStatistics({ node, onDone }) {
  if (!isAdministrator()) return null;
  const [title, url] = node === undefined
    ? ["Reset the statistics of all nodes?", path("reset")] : [`Reset the statistics of ${node}?`, path("reset", node)];
  const reset = async () => {
    if (!await confirm({ title, text: TEXT, action: "Reset statistics" })) return;
    if (await attempt("The statistics were not reset", () => del(url), "Statistics reset.")) onDone?.();
  };
  return html`<button type="button" onClick=${reset} data-test=${node === undefined ? "reset-all" : "reset-node"}>Reset statistics\u2026</button>`;
}
