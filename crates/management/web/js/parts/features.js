// What is special about a queue or an exchange, in few letters.

import { Badge } from "../components.js";
import { plain } from "../format.js";
import { html } from "../html.js";
import { PolicyLink } from "./source.js";

/** Arguments that have a badge of their own: name, policy key, letters, words. */
const KNOWN = [
  ["x-message-ttl", "message-ttl", "TTL", "messages expire after (ms)"],
  ["x-expires", "expires", "Exp", "deleted when unused for (ms)"],
  ["x-max-length", "max-length", "Lim", "messages at most"],
  ["x-max-length-bytes", "max-length-bytes", "Lim B", "bytes at most"],
  ["x-overflow", "overflow", "Ovfl", "when full"],
  ["x-dead-letter-exchange", "dead-letter-exchange", "DLX", "dead letters go to"],
  ["x-dead-letter-routing-key", "dead-letter-routing-key", "DLK", "dead letters get the key"],
  ["x-max-priority", null, "Pri", "priorities up to"],
  ["x-single-active-consumer", null, "SAC", "one consumer at a time"],
  ["x-delivery-limit", "delivery-limit", "DL", "deliveries at most"],
  ["alternate-exchange", "alternate-exchange", "AE", "what has nowhere to go goes to"],
];

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
    ${of.durable && html`<${Badge} title="durable: it is still there when the broker has been restarted">D<//>`}
    ${of.auto_delete && html`<${Badge} title="auto-delete: it goes with whoever uses it last">AD<//>`}
    ${of.exclusive && html`<${Badge} title="exclusive: it belongs to one connection">Excl<//>`}
    ${of.internal && html`<${Badge} title="internal: nobody can publish to it">I<//>`}
    ${known.map(([letters, words, isOwn]) => html`<${Badge} key=${letters} kind="accent" title=${`${words}${isOwn ? "" : " (by a policy)"}`}>${letters}<//>`)}
    ${others.length > 0 && html`<${Badge} title=${others.map(([name, value]) => `${name}: ${plain(value)}`).join("\n")}>Args<//>`}
  </span>`;
}

/** The policies that apply to something. */
export const Policies = ({ of }) => html`${of.policy ? html`<${PolicyLink} vhost=${of.vhost} name=${of.policy} />` : ""}${of.operator_policy ? html` <${Badge} title="operator policy"><${PolicyLink} source="operator_policy" vhost=${of.vhost} name=${of.operator_policy} /><//>` : ""}`;
