// The source of a setting: an argument, a policy, an operator policy, or the default.

import { visible } from "../format.js";
import { html } from "../html.js";
import { href } from "../router.js";

const KINDS = { policy: "policies", operator_policy: "operator-policies" };

/** A source in words. */
export const sourceWords = (source) => source.replace("_", " ");

/** A policy by its name, to be looked at and changed. */
export const PolicyLink = ({ source = "policy", vhost, name }) =>
  html`<a href=${href("admin", "policies", KINDS[source], vhost, name)} title=${name}>${visible(name)}</a>`;

/** A source, with its policy if it is one. */
export function Source({ vhost, source, name }) {
  if (!KINDS[source]) return sourceWords(source);
  return html`${sourceWords(source)} <${PolicyLink} source=${source} vhost=${vhost} name=${name} />`;
}
