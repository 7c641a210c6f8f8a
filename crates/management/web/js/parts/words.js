// Sentences with links in them: lists of texts and of things that have a name.

import { html } from "../html.js";
import { ExchangeLink, QueueLink } from "../components.js";
import { href } from "../router.js";
import { PolicyLink } from "./source.js";

const DEFAULT = "default exchange";

/** A queue, an exchange, a policy in a sentence; and something that is shown as it is. */
export const queue = (name) => ({ queue: name });
export const exchange = (name) => ({ exchange: name });
export const policy = (name, source) => ({ policy: name, source });
export const code = (text) => ({ code: text });

/** A sentence as text, for what can have no links. */
export const plainWords = (parts) => parts.map((part) => {
  if (typeof part === "string") return part;
  const [name] = Object.values(part);
  return "exchange" in part && name === "" ? DEFAULT : name;
}).join("");

/** `a`, `a and b`, `a, b and c`: each a part of a sentence. */
export const listed = (parts) => parts.flatMap((part, index) => {
  if (index === 0) return [part];
  return [index === parts.length - 1 ? " and " : ", ", part];
});

/** "with key a", "with keys a and b". */
export function withKeys(keys) {
  if (keys.length === 0) return [];
  if (keys.length === 1) return keys[0] === "" ? [" with an empty key"] : [" with key ", code(keys[0])];
  return [" with keys ", ...listed(keys.map(code))];
}

/** "exchange dlx with key a". */
export const toExchange = (name, keys) =>
  [...(name === "" ? ["the ", exchange("")] : ["exchange ", exchange(name)]), ...withKeys(keys)];

/** A sentence with its links. */
export const Words = ({ parts, vhost }) => parts.map((part, index) => {
  if (typeof part === "string") return part;
  if ("queue" in part) return html`<${QueueLink} key=${index} vhost=${vhost} name=${part.queue} />`;
  if (part.exchange === "") return html`<a key=${index} href=${href("exchanges", vhost, "amq.default")}>${DEFAULT}</a>`;
  if ("exchange" in part) return html`<${ExchangeLink} key=${index} vhost=${vhost} name=${part.exchange} />`;
  if ("policy" in part) return html`<${PolicyLink} key=${index} source=${part.source} vhost=${vhost} name=${part.policy} />`;
  return html`<code key=${index}>${part.code}</code>`;
});
