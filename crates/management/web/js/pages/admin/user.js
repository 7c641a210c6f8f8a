// One user: tags, password, permissions, limits, connections.

import { del, path, put } from "../../api.js";
import { Badge, Card, ConnectionLink, Loaded, Page } from "../../components.js";
import { confirm } from "../../dialog.js";
import { attempt } from "../../errors.js";
import { ActionForm, CheckField, TextField, useForm } from "../../forms.js";
import { html } from "../../html.js";
import { Permissions, TopicPermissions } from "../../parts/access.js";
import { Consequences, ofUser } from "../../parts/consequences.js";
import { Limits } from "../../parts/limits.js";
import { TagsField, tagsEdited, tagsToEdit } from "../../parts/tags.js";
import { usePolled } from "../../poll.js";
import { go, href } from "../../router.js";
import { basic, enter, session } from "../../session.js";
import { useStore } from "../../store.js";
import { PagedTable } from "../../table.js";

/** A change replaces the whole user: unchanged values are sent again. */
const sent = ({ tags, password_hash, hashing_algorithm }, changes) => ({ tags, password_hash, hashing_algorithm, ...changes });

function TagsCard({ user, onDone }) {
  const form = useForm({ tags: tagsToEdit(user.tags) });
  const save = async () => {
    await put(path("users", user.name), sent(user, { tags: tagsEdited(form.values.tags) }));
    onDone();
  };
  return html`<${Card} title="Tags" test="tags-card"><${ActionForm} onSubmit=${save} action="Save tags" done="Tags saved." test="tags-form">
    <${TagsField} ...${form.bind("tags")} legend="" /><//><//>`;
}

function PasswordCard({ user, onDone }) {
  const form = useForm({ password: "", again: "", isNone: false });
  const { values } = form;
  const save = async () => {
    if (!values.isNone && values.password === "") throw new Error("Enter a password.");
    if (!values.isNone && values.password !== values.again) throw new Error("The two passwords are not the same.");
    const lost = `Nobody can log in as ${user.name} then, until a new password is set.`;
    if (values.isNone && !(await confirm({ title: `Remove the password of ${user.name}?`, text: lost, action: "Remove" }))) return false;
    await put(path("users", user.name), values.isNone
      ? sent(user, { password_hash: "", hashing_algorithm: undefined })
      : { tags: user.tags, password: values.password });
    // The session goes on with the new password.
    const me = session.get();
    if (!values.isNone && me?.name === user.name) enter(basic(user.name, values.password), me);
    form.reset();
    onDone();
    return true;
  };
  return html`<${Card} title="Password" test="password-card">
    ${user.password_hash === "" && html`<p class="banner warning">This user has no password and cannot log in.</p>`}
    <p class="muted">The change applies to the next login. Open connections stay open.</p>
    <${ActionForm} onSubmit=${save} action=${values.isNone ? "Remove the password" : "Set password"} isDangerous=${values.isNone}
      done=${values.isNone ? "Password removed." : "Password set."} test="password-form">
      ${!values.isNone && html`<${TextField} label="New password" type="password" ...${form.bind("password")} autocomplete="new-password" data-test="new-password" />
        <${TextField} label="Repeat the password" type="password" ...${form.bind("again")} autocomplete="new-password" data-test="new-password-again" />`}
      <${CheckField} label="No password" hint="the user cannot log in" value=${values.isNone} onInput=${(isNone) => form.set({ isNone })} data-test="no-password" />
    <//>
  <//>`;
}

function Connections({ name }) {
  const columns = [
    { key: "given", title: "Client-provided name", sort: "user_provided_name", render: (row) => html`<a href=${href("connections", row.name)}>${row.user_provided_name ?? row.name}</a>` },
    { key: "name", title: "Address", width: "9rem", sort: "name", render: (row) => html`<${ConnectionLink} name=${row.name} />` },
    { key: "vhost", title: "Vhost", sort: "vhost", width: "5rem", render: ({ vhost }) => vhost },
    { key: "protocol", title: "Protocol", width: "6rem", render: ({ protocol }) => protocol },
  ];
  return html`<${Card} title="Connections" isWide=${true}>
    <${PagedTable} id="user-connections" url=${path("connections", "username", name)} hasFilter="many" isInAddress=${false} columns=${columns} rowKey=${(row) => row.name} noun="connection" empty="This user is not connected." /><//>`;
}

export default function User({ params: { name } }) {
  const polled = usePolled(path("users", name));
  const me = useStore(session)?.name;
  const remove = async () => {
    const text = html`${name === me && html`<p>This is your own user: you will be logged out and cannot log in again.</p>`}<${Consequences} load=${() => ofUser(name)} />`;
    if (!(await confirm({ title: `Delete the user ${name}?`, text, typed: name === me ? name : "" }))) return;
    if (await attempt(`${name} was not deleted`, () => del(path("users", name)), `${name} deleted.`)) go(href("admin", "users"));
  };
  const badges = name === me && html`<${Badge} kind="accent">you<//>`;
  return html`<${Page} title=${name} crumbs=${[["Users", href("admin", "users")]]} badges=${badges} test="page-user"
    polled=${polled} gone="This user does not exist (any more)."
    actions=${html`<button type="button" class="danger" onClick=${remove} data-test="delete">Delete</button>`}>
    <${Loaded} polled=${polled}>${(user) => html`
      <div class="cards">
        <${TagsCard} key=${user.tags.join()} user=${user} onDone=${polled.refresh} />
        <div class="stack"><${PasswordCard} user=${user} onDone=${polled.refresh} /><${Limits} of="user" name=${name} /></div>
      </div>
      <${Permissions} by="user" name=${name} />
      <${TopicPermissions} by="user" name=${name} />
      <${Connections} name=${name} />`}<//>
  <//>`;
}
