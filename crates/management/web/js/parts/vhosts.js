// Choosing a vhost, in lists and in forms.

import { path } from "../api.js";
import { visible } from "../format.js";
import { SelectField } from "../forms.js";
import { html, useEffect, useMemo } from "../html.js";
import { useMay } from "../permissions.js";
import { usePolled } from "../poll.js";
import { chosenVhost } from "../session.js";
import { useStore } from "../store.js";

const VHOSTS_MS = 30_000;

/** The vhosts of the user: `[{ name, default_queue_type }]`, or undefined until they are there. */
export const useVhosts = () => usePolled(`${path("vhosts")}?columns=name,default_queue_type`, VHOSTS_MS).data;

/** The vhost that lists are limited to; empty for all. */
export const useChosenVhost = () => useStore(chosenVhost);

/** A vhost in a form, of those in which the user may configure: starts with the one that lists are limited to, or the first. */
export function VhostField({ value, onInput }) {
  const may = useMay();
  const vhosts = (useVhosts() ?? []).filter((vhost) => may("configure", vhost.name) !== false);
  const first = chosenVhost.get() || (vhosts.find((vhost) => vhost.name === "/") ?? vhosts[0])?.name;
  useEffect(() => {
    if (!value && first) onInput(first);
  }, [first]);
  return html`<${SelectField} label="Virtual host" value=${value} onInput=${onInput} options=${vhosts.map((vhost) => [vhost.name, vhost.name])} data-test="form-vhost" />`;
}

const VHOST = { key: "vhost", title: "Virtual host", group: "Overview", sort: "vhost", width: "5rem", render: (row) => html`<span title=${row.vhost}>${visible(row.vhost)}</span>` };

/** The columns of a list, and after the first the vhost where there are several in it. */
export function useVhostColumns(columns) {
  const chosen = useChosenVhost();
  const isAlone = (useVhosts() ?? []).length < 2;
  return useMemo(() => (chosen || isAlone ? columns : [columns[0], VHOST, ...columns.slice(1)]), [chosen, isAlone, columns]);
}
