// The limits of vhosts and users.

import { path } from "../../api.js";
import { Card, Page, UserLink } from "../../components.js";
import { ActionForm, NumberField, SelectField, TextField, useForm } from "../../forms.js";
import { html } from "../../html.js";
import { actionsColumn } from "../../parts/columns.js";
import { NO_LIMIT } from "../../parts/empty.js";
import { limitInWords, LIMITS, removeLimit, setLimit } from "../../parts/limits.js";
import { usePolled } from "../../poll.js";
import { href } from "../../router.js";
import { isAdministrator } from "../../session.js";
import { ListTable } from "../../table.js";

const KINDS = [
  ["vhost", "Vhosts", "At the limit, new connections are refused (530) and new queues are refused (406)."],
  ["user", "Users", "Counted over all vhosts. At the limit, new connections and channels are refused (530)."],
];

function NewLimit({ of, onDone }) {
  const form = useForm({ name: "", limit: LIMITS[of][0][0], value: "" });
  const { values } = form;
  const names = usePolled(`${path(`${of}s`)}?page=1&page_size=100&columns=name&disable_stats=true`, 60_000).data?.items ?? [];
  const save = async () => {
    await setLimit(of, values.name, values.limit, values.value);
    form.set({ value: "" });
    onDone();
  };
  const list = `limits-${of}`;
  return html`<${ActionForm} onSubmit=${save} action="Set" done="Limit set." test=${`limit-form-${of}`}>
    <${TextField} label=${of === "vhost" ? "Vhost" : "User"} ...${form.bind("name")} list=${list} required data-test="limit-of" />
    <datalist id=${list}>${names.map(({ name }) => html`<option key=${name} value=${name}></option>`)}</datalist>
    <${SelectField} label="Limit" ...${form.bind("limit")} options=${LIMITS[of]} data-test="limit-name" />
    <${NumberField} label="Value" ...${form.bind("value")} min=${undefined} required hint="0 allows none, -1 means no limit" data-test="limit-value" />
  <//>`;
}

function List({ of, title, text }) {
  const polled = usePolled(path(`${of}-limits`));
  const rows = polled.data?.flatMap((entry) => Object.entries(entry.value).map(([limit, value]) => ({ name: entry[of], limit, value })));
  const remove = async ({ name, limit }) => (await removeLimit(of, name, limit)) && polled.refresh();
  const columns = [
    { key: "name", title: of === "vhost" ? "Vhost" : "User", sort: "name", width: "14rem",
      render: ({ name }) => (of === "user" ? html`<${UserLink} name=${name} />` : isAdministrator() ? html`<a href=${href("admin", "vhosts", name)}>${name}</a>` : name) },
    { key: "limit", title: "Limit", sort: "limit", width: "12rem", render: ({ limit }) => limit },
    { key: "value", title: "Value", phone: 1, sort: "value", align: "right", width: "6rem", render: ({ value }) => limitInWords(value) },
    ...(isAdministrator() ? [actionsColumn((row) => html`<button type="button" class="quiet" onClick=${() => remove(row)} data-test="remove">Remove</button>`)] : []),
  ];
  return html`<${Card} title=${title} test=${`limits-${of}`} isWide=${true}>
    <p class="muted">${text}</p>
    <${ListTable} id=${`limits-${of}`} polled=${polled} rows=${rows} columns=${columns} rowKey=${(row) => `${row.name}/${row.limit}`} noun="limit" hasFilter=${true} defaultSort=${{ key: "name" }} empty=${NO_LIMIT} />
    ${isAdministrator() && html`<${NewLimit} of=${of} onDone=${polled.refresh} />`}
  <//>`;
}

export default function Limits() {
  // Those of other users are for administrators.
  const seen = KINDS.filter(([of]) => of === "vhost" || isAdministrator());
  return html`<${Page} title="Limits" test="page-limits">
    <p class="lead">A lower limit does not close connections or delete queues that exist already.</p>
    ${seen.map(([of, title, text]) => html`<${List} key=${of} of=${of} title=${title} text=${text} />`)}
  <//>`;
}
