// Limits of a vhost or of a user.

import { del, path, put } from "../api.js";
import { Card } from "../components.js";
import { attempt } from "../errors.js";
import { DASH, number } from "../format.js";
import { ActionForm, NumberField, SelectField, useForm } from "../forms.js";
import { html } from "../html.js";
import { usePolled } from "../poll.js";

/** Which limits there are, of what. */
export const LIMITS = {
  vhost: [["max-connections", "Connections"], ["max-queues", "Queues"]],
  user: [["max-connections", "Connections"], ["max-channels", "Channels"]],
};

const resource = (of) => `${of}-limits`;

/** Sets a limit; what is no number is for the server to refuse. */
export const setLimit = (of, name, limit, text) =>
  put(path(resource(of), name, limit), { value: text.trim() === "" || Number.isNaN(Number(text)) ? text : Number(text) });

/** Removes a limit; true if it was removed. */
export const removeLimit = (of, name, limit) =>
  attempt(`The limit of ${name} was not removed`, () => del(path(resource(of), name, limit)), `Limit ${limit} of ${name} removed.`);

/** A limit in words; a negative one is none. */
export const limitInWords = (value) => (value < 0 ? `${value} (no limit)` : value === 0 ? "0 (none allowed)" : number(value));

/** The limits of the vhost or user (`of`) with this name. */
export function Limits({ of, name, mayChange = true }) {
  const polled = usePolled(path(resource(of), name));
  const set = polled.data?.[0]?.value ?? {};
  const form = useForm({ limit: LIMITS[of][0][0], value: "" });
  const save = async () => {
    await setLimit(of, name, form.values.limit, form.values.value);
    form.set({ value: "" });
    polled.refresh();
  };
  const remove = async (limit) => (await removeLimit(of, name, limit)) && polled.refresh();
  return html`<${Card} title="Limits" test="limits">
    <dl class="facts">${LIMITS[of].map(([limit, title]) => html`<div key=${limit}><dt>${title}</dt>
      <dd data-test=${`limit-${limit}`}>${polled.data === undefined ? DASH : set[limit] === undefined ? html`<span class="muted">no limit</span>` : html`${limitInWords(set[limit])}
        ${mayChange && html`<button type="button" class="quiet" aria-label=${`Remove the limit ${limit}`} onClick=${() => remove(limit)}>Remove</button>`}`}</dd></div>`)}</dl>
    ${mayChange && html`<${ActionForm} onSubmit=${save} action="Set" done="Limit set." test="limit-form">
      <${SelectField} label="Limit" ...${form.bind("limit")} options=${LIMITS[of]} data-test="limit-name" />
      <${NumberField} label="Value" ...${form.bind("value")} min=${undefined} required hint="0 allows none, -1 means no limit" data-test="limit-value" /><//>`}
  <//>`;
}
