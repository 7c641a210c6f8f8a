// The columns of a list: which are shown, in which order, and the menu to choose them.

import { html, useState } from "../html.js";
import { recall, remember } from "../store.js";
import { usePhone } from "../viewport.js";

/** On a phone the name comes first, then the columns with a place there, then the others, and buttons at the end. */
function inOrder(columns, isPhone) {
  if (!isPhone) return columns;
  const [name, ...others] = columns;
  const place = (column) => (column.isPinned ? Number.MAX_VALUE : column.phone ?? Number.MAX_SAFE_INTEGER);
  return [name, ...others.sort((a, b) => place(a) - place(b))];
}

/** The columns that are shown, and the menu in which they are chosen, group by group. */
export function useColumns(id, columns) {
  const key = `leveret.columns.${id}`;
  const [chosen, setChosen] = useState(() => recall(key, {}));
  const isPhone = usePhone();
  const isShown = (column) => chosen[column.key] ?? !column.isOptional;
  const keep = (next) => {
    setChosen(next);
    remember(key, Object.keys(next).length > 0 ? next : null);
  };
  const groups = [...Map.groupBy(columns, (column) => column.group ?? "")];
  const menu = html`<details class="menu" data-test="columns"><summary>Columns</summary><div class="menu-box is-columns">
    ${groups.map(([title, members]) => html`<fieldset key=${title}>${title && html`<legend>${title}</legend>`}
      ${members.map((column) => html`<label class="check" key=${column.key}>
        <input type="checkbox" checked=${isShown(column)} data-test=${`column-${column.key}`} onInput=${(event) => keep({ ...chosen, [column.key]: event.target.checked })} />
        <span>${column.name ?? column.title}</span></label>`)}</fieldset>`)}
    <button type="button" class="quiet" disabled=${Object.keys(chosen).length === 0} onClick=${() => keep({})} data-test="default-columns">Default columns</button>
  </div></details>`;
  return [inOrder(columns.filter(isShown), isPhone), menu];
}
