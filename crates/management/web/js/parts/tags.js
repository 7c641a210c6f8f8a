// Tags of a user: the access to the HTTP API.

import { Badge } from "../components.js";
import { CheckField, TextField } from "../forms.js";
import { html } from "../html.js";

const KNOWN = [
  ["administrator", "everything"],
  ["monitoring", "read nodes, all vhosts and all connections"],
  ["policymaker", "change policies in vhosts of the user"],
  ["management", "use this page, for vhosts of the user"],
  ["impersonator", "publish with any user_id; gives no access to this page"],
];
const names = KNOWN.map(([name]) => name);

/** What is edited by `TagsField`, for the tags of a user. */
export const tagsToEdit = (tags = []) => ({
  chosen: tags.filter((tag) => names.includes(tag)),
  others: tags.filter((tag) => !names.includes(tag)).join(", "),
});

/** The tags that stand for what was edited. */
export const tagsEdited = ({ chosen, others }) => [...chosen, ...others.split(",").map((tag) => tag.trim()).filter((tag) => tag !== "")];

/** Tags to choose. */
export function TagsField({ value, onInput, legend = "Tags" }) {
  const toggle = (tag, isThere) => onInput({ ...value, chosen: isThere ? [...value.chosen, tag] : value.chosen.filter((one) => one !== tag) });
  return html`<fieldset class="tags is-wide">${legend && html`<legend>${legend}</legend>`}
    ${KNOWN.map(([tag, hint]) => html`<${CheckField} key=${tag} label=${tag} hint=${hint} value=${value.chosen.includes(tag)} onInput=${(isThere) => toggle(tag, isThere)} data-test=${`tag-${tag}`} />`)}
    <${TextField} label="Others" value=${value.others} onInput=${(others) => onInput({ ...value, others })} hint="Separated by commas. This page and the API need one of the first four tags; AMQP needs none." data-test="tags-others" />
  </fieldset>`;
}

/** The tags of a user, to be looked at. */
export const Tags = ({ tags }) => (tags.length === 0 ? html`<span class="muted">none</span>`
  : html`<span class="badges">${tags.map((tag) => html`<${Badge} key=${tag} kind=${tag === "administrator" ? "accent" : ""}>${tag}<//>`)}</span>`);
