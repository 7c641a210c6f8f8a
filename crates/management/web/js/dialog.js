// Windows on top of the page, on <dialog>: focus stays in them and Escape closes them.

import { html, useLayoutEffect, useRef, useState } from "./html.js";
import { store, useStore } from "./store.js";

const open = store([]);
let lastId = 0;

/**
 * A dialog with a title. `onClose` is called when it is closed in any way.
 * Buttons belong into a `<div class="actions">` at the end.
 */
export function Dialog({ title, onClose, children, isWide = false, test }) {
  const element = useRef(null);
  useLayoutEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    dialog.showModal();
    return () => {
      dialog.close();
      if (before?.isConnected) before.focus();
    };
  }, []);
  const cancel = (event) => {
    event.preventDefault();
    onClose();
  };
  return html`<dialog ref=${element} class=${isWide ? "is-wide" : ""} onCancel=${cancel} aria-label=${title} data-test=${test}>
    <header><h2>${title}</h2>
      <button type="button" class="quiet" onClick=${onClose} aria-label="Close">\u2715</button></header>
    ${children}
  </dialog>`;
}

/** Opens a dialog from anywhere: `draw(close)` gives what is shown. Resolves to what `close` gets. */
export function openDialog(draw) {
  return new Promise((resolve) => {
    lastId += 1;
    const id = lastId;
    const close = (value) => {
      open.set((all) => all.filter((one) => one.id !== id));
      resolve(value);
    };
    open.set((all) => [...all, { id, draw, close }]);
  });
}

/**
 * Asks before something that cannot be undone; true if the answer is yes.
 * With `typed`, this word must be typed first: for what takes much with it.
 */
export function confirm({ title, text, action = "Delete", isDangerous = true, typed = "" }) {
  return openDialog((close) => html`<${Confirm} ...${{ title, text, action, isDangerous, typed, close }} />`);
}

function Confirm({ title, text, action, isDangerous, typed, close }) {
  const [word, setWord] = useState("");
  const submit = (event) => {
    event.preventDefault();
    if (word === typed) close(true);
  };
  return html`<${Dialog} title=${title} onClose=${() => close(false)} test="confirm">
    <form onSubmit=${submit}>
      <div class="dialog-text">${text}</div>
      ${typed && html`<label class="field"><span>Type <code>${typed}</code> to continue</span>
        <input type="text" value=${word} autocomplete="off" onInput=${(event) => setWord(event.target.value)} /></label>`}
      <div class="actions">
        <button type="button" onClick=${() => close(false)}>Cancel</button>
        <button type="submit" class=${isDangerous ? "danger" : "primary"} disabled=${word !== typed}
          autofocus=${!typed} data-test="confirm-yes">${action}</button>
      </div>
    </form>
  <//>`;
}

/** Where opened dialogs are drawn: once in the page. */
export function Dialogs() {
  return useStore(open).map(({ id, draw, close }) => html`<div key=${id}>${draw(close)}</div>`);
}
