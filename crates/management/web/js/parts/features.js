// Features of a queue or an exchange as badges of few letters.

import { Badge } from "../components.js";
import { plain } from "../format.js";
import { html } from "../html.js";
import { PolicyLink } from "./source.js";

/** Arguments that have a badge of their own: name, policy key, letters, words. */
const KNOWN = [
  ["x-message-ttl", "message-ttl", "TTL", "message TTL (ms)"],
  ["x-expires", "expires", "Exp", "queue deleted when unused for (ms)"],
  ["x-max-length", "max-length", "Lim", "length limit (messages)"],
  ["x-max-length-bytes", "max-length-bytes", "Lim B", "length limit (bytes)"],
  ["x-overflow", "overflow", "Ovfl", "overflow behaviour"],
  ["x-dead-letter-exchange", "dead-letter-exchange", "DLX", "dead-letter exchange"],
  ["x-dead-letter-routing-key", "dead-letter-routing-key", "DLK", "dead-letter routing key"],
  ["x-max-priority", null, "Pri", "highest priority"],
  ["x-single-active-consumer", null, "SAC", "single active consumer"],
  ["x-delivery-limit", "delivery-limit", "DL", "delivery limit"],
  ["alternate-exchange", "alternate-exchange", "AE", "alternate exchange"],
];

const FLAGS = [
  ["D", "durable: survives a restart of the broker"],
  ["AD", "auto-delete: deleted with its last consumer or binding"],
  ["Excl", "exclusive: belongs to one connection"],
  ["I", "internal: clients cannot publish to it"],
];
const FLAG_WORDS = Object.fromEntries(FLAGS);

/** What the badges mean: `[letters, words]`. */
export const FEATURE_LEGEND = [...FLAGS, ...KNOWN.map(([, , letters, words]) => [letters, words]), ["Args", "other arguments"]];

/** Badges for flags, arguments and policies of a queue or an exchange. */
export function Features({ of }) {
  const policy = of.effective_policy_definition ?? {};
  const args = of.arguments ?? {};
  const known = KNOWN.flatMap(([argument, key, letters, words]) => {
    const value = args[argument] ?? (key ? policy[key] : undefined);
    return value === undefined ? [] : [[letters, `${words}: ${plain(value)}`, argument in args]];
  });
  const names = KNOWN.map(([argument]) => argument);
  const others = Object.entries(args).filter(([name]) => !names.includes(name) && name !== "x-queue-type");
  return html`<span class="features">
    ${of.durable && html`<${Badge} title=${FLAG_WORDS.D}>D<//>`}
    ${of.auto_delete && html`<${Badge} title=${FLAG_WORDS.AD}>AD<//>`}
    ${of.exclusive && html`<${Badge} title=${FLAG_WORDS.Excl}>Excl<//>`}
    ${of.internal && html`<${Badge} title=${FLAG_WORDS.I}>I<//>`}
    ${known.map(([letters, words, isOwn]) => html`<${Badge} key=${letters} kind="accent" title=${`${words}${isOwn ? "" : " (by a policy)"}`}>${letters}<//>`)}
    ${others.length > 0 && html`<${Badge} title=${others.map(([name, value]) => `${name}: ${plain(value)}`).join("\n")}>Args<//>`}
  </span>`;
}

/** The policies that apply to something. */
export const Policies = ({ of }) => html`${of.policy ? html`<${PolicyLink} vhost=${of.vhost} name=${of.policy} />` : ""}${of.operator_policy ? html` <${Badge} title="operator policy"><${PolicyLink} source="operator_policy" vhost=${of.vhost} name=${of.operator_policy} /><//>` : ""}`;
