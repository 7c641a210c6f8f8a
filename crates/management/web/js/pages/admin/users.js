// All users.

import { path, put } from "../../api.js";
import { Badge, Page, UserLink } from "../../components.js";
import { Dialog, openDialog } from "../../dialog.js";
import { ActionForm, TextField, useForm } from "../../forms.js";
import { html, useMemo } from "../../html.js";
import { Tags, TagsField, tagsEdited, tagsToEdit } from "../../parts/tags.js";
import { usePolled } from "../../poll.js";
import { go, href } from "../../router.js";
import { PagedTable } from "../../table.js";

const VHOSTS_SHOWN_MAX = 4;
const PERMISSIONS_MS = 30_000;

/** The dialog for a new user. */
function NewUser({ close }) {
  const form = useForm({ name: "", password: "", tags: tagsToEdit(["management"]) });
  const { values } = form;
  const save = async () => {
    const body = { tags: tagsEdited(values.tags) };
    // Without a password the user cannot log in; an empty one is refused.
    if (values.password !== "") body.password = values.password;
    await put(path("users", values.name), body);
    close(values.name);
  };
  return html`<${Dialog} title="New user" onClose=${() => close(null)} test="user-dialog">
    <${ActionForm} onSubmit=${save} action="Add" done=${`User ${values.name} created.`} onCancel=${() => close(null)} test="user-form">
      <${TextField} label="Name" ...${form.bind("name")} required autocapitalize="none" data-test="user-name" />
      <${TextField} label="Password" ...${form.bind("password")} type="password" autocomplete="new-password" hint="Without a password the user cannot log in." data-test="user-password" />
      <${TagsField} ...${form.bind("tags")} />
    <//>
  <//>`;
}

function Vhosts({ vhosts }) {
  if (vhosts.length === 0) return html`<${Badge} kind="warning" title="This user has no permissions in any vhost">none<//>`;
  const shown = vhosts.slice(0, VHOSTS_SHOWN_MAX).join(", ");
  return html`<span title=${vhosts.join(", ")}>${shown}${vhosts.length > VHOSTS_SHOWN_MAX ? ` and ${vhosts.length - VHOSTS_SHOWN_MAX} more` : ""}</span>`;
}

const columnsOf = (vhostsOf) => [
  { key: "name", title: "Name", sort: "name", render: ({ name }) => html`<${UserLink} name=${name} />` },
  { key: "tags", title: "Tags", phone: 1, width: "8rem", render: ({ tags }) => html`<${Tags} tags=${tags} />` },
  { key: "vhosts", title: "Vhosts", width: "8rem", phone: 2, render: ({ name }) => (vhostsOf ? html`<${Vhosts} vhosts=${vhostsOf.get(name) ?? []} />` : "") },
  { key: "password", title: "Password", width: "5rem", render: ({ password_hash: hash }) => (hash === "" ? html`<${Badge} kind="warning" title="Without a password the user cannot log in">none<//>` : "set") },
  { key: "limits", title: "Limits", width: "5rem", render: ({ limits }) => Object.entries(limits).map(([name, value]) => `${name} ${value}`).join(", ") },
];

function vhostsByUser(permissions) {
  const all = new Map();
  for (const { user, vhost } of permissions) all.set(user, [...(all.get(user) ?? []), vhost]);
  return all;
}

export default function Users() {
  const permissions = usePolled(`${path("permissions")}?columns=user,vhost`, PERMISSIONS_MS);
  const vhostsOf = useMemo(() => permissions.data && vhostsByUser(permissions.data), [permissions.data]);
  const add = async () => {
    const name = await openDialog((close) => html`<${NewUser} close=${close} />`);
    if (name) go(href("admin", "users", name));
  };
  return html`<${Page} title="Users" test="page-users" actions=${html`<button type="button" class="primary" onClick=${add} data-test="add-user">Add a user</button>`}>
    <${PagedTable} id="users" url=${path("users")} columns=${columnsOf(vhostsOf)} rowKey=${(row) => row.name} noun="user" defaultSort=${{ key: "name" }} empty="No users." />
  <//>`;
}
