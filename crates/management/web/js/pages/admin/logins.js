// Counters of login attempts.

import { del, path } from "../../api.js";
import { Card, Page } from "../../components.js";
import { confirm } from "../../dialog.js";
import { attempt } from "../../errors.js";
import { count, number, percent } from "../../format.js";
import { html } from "../../html.js";
import { usePolled } from "../../poll.js";
import { isAdministrator } from "../../session.js";
import { ListTable } from "../../table.js";

const amount = (key, title) => ({ key, title, sort: key, align: "right", width: "9rem", render: (row) => number(row[key]) });
const columns = [
  { key: "protocol", title: "Protocol", sort: "protocol", width: "10rem", render: ({ protocol }) => protocol },
  amount("auth_attempts", "Attempts"),
  amount("auth_attempts_succeeded", "Succeeded"),
  amount("auth_attempts_failed", "Failed"),
  { key: "share", title: "Failed in %", align: "right", width: "9rem", render: (row) => (row.auth_attempts > 0 ? percent(row.auth_attempts_failed / row.auth_attempts) : "") },
];

function Attempts({ node }) {
  const polled = usePolled(path("auth", "attempts", node));
  const reset = async () => {
    const attempts = (polled.data ?? []).reduce((sum, row) => sum + row.auth_attempts, 0);
    const text = html`The counters of <b>${count(attempts, "login attempt")}</b> by ${count(polled.data?.length ?? 0, "protocol")} become 0.`;
    if (!(await confirm({ title: "Reset counters?", text, action: "Reset counters" }))) return;
    if (await attempt("The counters were not reset", () => del(path("auth", "attempts", node)), "Counters reset.")) polled.refresh();
  };
  return html`<${Card} title=${node} isWide=${true} test="logins"
    actions=${isAdministrator() && html`<button type="button" onClick=${reset} data-test="reset">Reset counters\u2026</button>`}>
    <${ListTable} id="logins" polled=${polled} columns=${columns} rowKey=${(row) => row.protocol} noun="protocol" empty="No login attempts yet." /><//>`;
}

export default function Logins() {
  const nodes = usePolled(`${path("nodes")}?columns=name`, 60_000).data ?? [];
  return html`<${Page} title="Logins" test="page-logins">
    <p class="lead">Every request to the HTTP API counts as a login, requests of this page too. The log has the user and the reason of each refusal.</p>
    ${nodes.map(({ name }) => html`<${Attempts} key=${name} node=${name} />`)}
  <//>`;
}
