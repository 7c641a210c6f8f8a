// The keyboard: what keys do outside of text fields.

import { Dialog, openDialog } from "./dialog.js";
import { html } from "./html.js";
import { go, href } from "./router.js";

const SEQUENCE_MS = 1200;

/** After `g`: where a key goes, and what that is called. */
const PLACES = {
  o: [[], "Overview"],
  q: [["queues"], "Queues"],
  d: [["dead-letters"], "Dead letters"],
  r: [["redrives"], "Redrives"],
  e: [["exchanges"], "Exchanges"],
  s: [["scheduled"], "Scheduled messages"],
  c: [["connections"], "Connections"],
  h: [["channels"], "Channels"],
  n: [["nodes"], "Nodes"],
  a: [["admin", "users"], "Admin"],
};

let pressedG = 0;

/** Listens to keys. */
export function listen() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    const isSecond = event.timeStamp - pressedG < SEQUENCE_MS;
    pressedG = 0;
    if (isSecond && PLACES[event.key]) go(href(...PLACES[event.key][0]));
    else if (event.key === "g") pressedG = event.timeStamp;
    else if (event.key === "/") focusFilter();
    else if (event.key === "?") help();
    else return;
    event.preventDefault();
  });
}

const isTyping = (target) => target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)
  && !/^(checkbox|radio|button)$/.test(target.type);

function focusFilter() {
  const filter = document.querySelector("[data-filter]");
  filter?.focus();
  filter?.select();
}

/** Shows what the keys do. */
export function help() {
  const rows = Object.entries(PLACES).map(([key, [, title]]) => [["g", key], title]);
  const all = [...rows, [["/"], "Focus the filter of the list"], [["?"], "Show this help"], [["Esc"], "Close a dialog"], [["Tab"], "Focus the next link or button"]];
  openDialog((close) => html`<${Dialog} title="Keyboard" onClose=${() => close()} test="keys">
    <dl class="keys">${all.map(([keys, title]) => html`<div key=${title}>
      <dt>${keys.map((key) => html`<kbd>${key}</kbd>`)}</dt><dd>${title}</dd></div>`)}</dl>
  <//>`);
}
