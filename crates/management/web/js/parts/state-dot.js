// A state in a list: a dot, and a word where it is not the usual one.

import { classes, html } from "../html.js";

/** `kind` is the colour of the dot, as of `State`; `isUsual` hides the word, which stays in the title, unless there is another `title`. */
export const StateDot = ({ kind = "", isUsual = kind === "good", title, children }) => html`<span class=${classes("state", kind)} title=${title ?? children} data-test="state">
  <span class=${isUsual ? "sr-only" : ""}>${children}</span></span>`;
