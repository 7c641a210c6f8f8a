// All policies and operator policies, of one vhost or of all.

import { del, path } from "../../api.js";
import { Page } from "../../components.js";
import { confirm } from "../../dialog.js";
import { attempt } from "../../errors.js";
import { html, useMemo, useRef } from "../../html.js";
import { actionsColumn } from "../../parts/columns.js";
import { dryRun, Told } from "../../parts/dry-run.js";
import { noPolicy } from "../../parts/empty.js";
import { Definition } from "../../parts/policy-keys.js";
import { useChosenVhost, useVhostColumns, useVhosts } from "../../parts/vhosts.js";
import { href, hrefWith } from "../../router.js";
import { isAdministrator, isPolicymaker } from "../../session.js";
import { PagedTable } from "../../table.js";

const KINDS = [
  ["policies", "Policies", "Settings of queues and exchanges, given by their users. At most one policy applies to each: the matching one with the highest priority.", isPolicymaker],
  ["operator-policies", "Operator policies", "Limits given by the operator. At most one operator policy applies to each queue, together with a policy.", isAdministrator],
];

/** Asks, with what would happen, and deletes; true if it was done. */
export async function removePolicy(kind, { vhost, name }) {
  // The policy can be deleted without an answer, too.
  const told = await dryRun(kind, vhost, name, { delete: true }).catch(() => null);
  const text = told
    ? html`<${Told} vhost=${vhost} told=${told} isDelete=${true} />`
    : `The policy is in the vhost ${vhost}.`;
  if (!(await confirm({ title: `Delete the policy ${name}?`, text, isWide: Boolean(told?.queues.length) }))) return false;
  return attempt(`${name} was not deleted`, () => del(path(kind, vhost, name)), `${name} deleted.`);
}

function columnsOf({ kind, mayChange, onDelete }) {
  return [
    { key: "name", title: "Name", sort: "name",
      render: ({ vhost, name }) => html`<a href=${href("admin", "policies", kind, vhost, name)} title=${name} data-test="policy-link">${name}</a>` },
    { key: "pattern", title: "Pattern", sort: "pattern", phone: 1, width: "6rem", render: ({ pattern }) => html`<code title=${pattern}>${pattern}</code>` },
    { key: "apply-to", title: "Applies to", sort: "apply-to", phone: 4, width: "5rem", render: (row) => row["apply-to"].replace("_", " ") },
    { key: "priority", title: "Priority", sort: "priority", phone: 2, align: "right", width: "4rem", render: ({ priority }) => priority },
    { key: "definition", title: "Definition", phone: 3, width: "12rem", render: ({ definition }) => html`<${Definition} definition=${definition} />` },
    ...(mayChange ? [actionsColumn((row) => html`<button type="button" class="quiet" aria-label=${`Delete ${row.name}`} onClick=${() => onDelete(row)} data-test="delete">Delete</button>`)] : []),
  ];
}

function List({ kind, title, text, hasTag }) {
  const vhost = useChosenVhost();
  // A policy is of a vhost.
  const vhosts = useVhosts();
  const mayChange = hasTag && vhosts?.length !== 0;
  const again = useRef(null);
  const columns = useVhostColumns(useMemo(() => {
    const onDelete = async (row) => (await removePolicy(kind, row)) && again.current?.();
    return columnsOf({ kind, mayChange, onDelete });
  }, [kind, mayChange]));
  return html`<section class="card is-wide" data-test=${kind}>
    <header><h2>${title}</h2>${mayChange && html`<div class="actions"><a class="button" href=${hrefWith({ kind }, "admin", "policies", "new")} data-test=${`add-${kind}`}>Add</a></div>`}</header>
    <p class="muted">${text}</p>
    <${PagedTable} id=${kind} url=${vhost ? path(kind, vhost) : path(kind)} again=${again} columns=${columns} rowKey=${(row) => `${row.vhost}/${row.name}`}
      noun=${title.toLowerCase().replace(/ies$/, "y")} defaultSort=${{ key: "name" }} isInAddress=${kind === "policies"} filterLabel="Filter by name or pattern"
      empty=${noPolicy(vhost)} />
  </section>`;
}

export default function Policies() {
  return html`<${Page} title="Policies" test="page-policies">
    <p class="lead">A policy gives settings to all queues and exchanges whose names match a pattern. It takes effect at once, without a restart or a new declaration.</p>
    ${KINDS.map(([kind, title, text, isFor]) => html`<${List} key=${kind} kind=${kind} title=${title} text=${text} hasTag=${isFor()} />`)}
  <//>`;
}
