// The permissions of the user in vhosts, as the broker said last: what they forbid is not offered.

import { html } from "./html.js";
import { session } from "./session.js";
import { store, useStore } from "./store.js";

/** `[{ vhost, configure, write, read }]`; undefined until the broker has told them. */
const granted = store(undefined);

session.subscribe(() => session.get() ?? granted.set(undefined));

/** Keeps what the broker said. */
export function grant(permissions) {
  if (JSON.stringify(permissions) !== JSON.stringify(granted.get())) granted.set(permissions);
}

/** Patterns that match no name. */
const NONE = ["", "^$"];

/** True if a pattern of the broker matches a name; it decides itself where the browser cannot read the pattern. */
function matches(pattern, name) {
  if (NONE.includes(pattern) || name === undefined) return !NONE.includes(pattern);
  try {
    return new RegExp(pattern).test(name);
  } catch {
    return true;
  }
}

/**
 * A function that tells whether the user has a permission (`configure`, `write`, `read`) in a vhost, for a name or for
 * any name; without a vhost in one vhost at least. Undefined until that is known.
 */
export function useMay() {
  const all = useStore(granted);
  return (what, vhost, name) => all?.some((one) => (!vhost || one.vhost === vhost) && matches(one[what], name));
}

/**
 * What is offered to users with a permission (`to`; one of several if it is a list); others read which one they lack, in a
 * row of a list (`isInRow`) as the title of two words.
 */
export function Permitted({ to, vhost, name, what, test, isInRow = false, children }) {
  const may = useMay();
  const answers = [to].flat().map((one) => may(one, vhost, name));
  if (answers.includes(undefined)) return null;
  if (answers.includes(true)) return children;
  const where = vhost ? `virtual host ${vhost}` : "any virtual host";
  const text = `${what} needs the permission to ${[to].flat().join(" or ")}${name === undefined ? "" : ` ${name || "the default exchange"}`} in ${where}.`;
  return isInRow
    ? html`<span class="muted" title=${text} data-test=${test}>no permission</span>`
    : html`<p class="muted lacks" data-test=${test}>${text}</p>`;
}
