// Windows on top of the page, on <dialog>: focus begins at the right place, stays in them and returns; Escape closes them.

import { html, useEffect, useLayoutEffect, useRef, useState } from "./html.js";
import { session } from "./session.js";
import { store, useStore } from "./store.js";

const FIELDS = ["input:not([type=hidden], [type=radio]):enabled", "input[type=radio]:checked:enabled", "select:enabled", "textarea:enabled"].join();
const FOCUSABLE = `a[href], button:enabled, summary, [tabindex]:not([tabindex="-1"]), ${FIELDS}`;

const open = store([]);
let lastId = 0;

/** Where the focus begins: Cancel if what is asked for cannot be undone, or else the first field, or else the last button. */
function firstOf(dialog, isDangerous) {
  return dialog.querySelector("[data-first]")
    ?? (isDangerous ? dialog.querySelector("[data-cancel]") : null)
    ?? dialog.querySelector("[autofocus]")
    ?? dialog.querySelector(FIELDS)
    ?? [...dialog.querySelectorAll(".actions button:enabled")].at(-1)
    ?? dialog.querySelector("button");
}

/** Gives the focus back to what had it, or to the title of the page if that is gone. */
function giveBack(before) {
  if (before?.isConnected && before !== document.body) before.focus();
  if (before === document.body || document.activeElement !== before) document.querySelector("main h1")?.focus({ preventScroll: true });
}

/** The Tab key goes round in the dialog, and not on to the browser's own buttons. */
function goRound(event) {
  if (event.key !== "Tab") return;
  const all = [...event.currentTarget.querySelectorAll(FOCUSABLE)].filter((element) => element.checkVisibility());
  const [from, to] = event.shiftKey ? [all[0], all.at(-1)] : [all.at(-1), all[0]];
  if (document.activeElement !== from) return;
  event.preventDefault();
  to.focus();
}

/**
 * A dialog with a title. `onClose` is called when it is closed in any way. Buttons belong into a
 * `<div class="actions">` at the end; Cancel has `data-cancel`. In a dialog that `isDangerous` Cancel has the focus.
 */
export function Dialog({ title, onClose, children, isWide = false, isDangerous = false, test }) {
  const element = useRef(null);
  useLayoutEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    dialog.showModal();
    firstOf(dialog, isDangerous)?.focus();
    return () => {
      dialog.close();
      giveBack(before);
    };
  }, []);
  const cancel = (event) => {
    event.preventDefault();
    onClose();
  };
  return html`<dialog ref=${element} class=${isWide ? "is-wide" : ""} onCancel=${cancel} onClose=${() => onClose()} onKeyDown=${goRound} aria-label=${title} data-test=${test}>
    <header><h2>${title}</h2>
      <button type="button" class="quiet" onClick=${() => onClose()} aria-label="Close">\u2715</button></header>
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
export function confirm({ title, text, action = "Delete", isDangerous = true, isWide = false, typed = "" }) {
  return openDialog((close) => html`<${Confirm} ...${{ title, text, action, isDangerous, isWide, typed, close }} />`);
}

/** The field for the word that must be typed before something large is done. */
export const TypedField = ({ typed, word, onInput }) => html`<label class="field is-wide"><span>Type <code>${typed}</code> to continue</span>
  <input type="text" value=${word} autocomplete="off" spellcheck=${false} onInput=${(event) => onInput(event.target.value)} data-first data-test="typed" /></label>`;

function Confirm({ title, text, action, isDangerous, isWide, typed, close }) {
  const [word, setWord] = useState("");
  const submit = (event) => {
    event.preventDefault();
    if (word === typed) close(true);
  };
  return html`<${Dialog} title=${title} onClose=${() => close(false)} isDangerous=${isDangerous} isWide=${isWide} test="confirm">
    <form onSubmit=${submit}>
      <div class="dialog-text">${text}</div>
      ${typed && html`<${TypedField} typed=${typed} word=${word} onInput=${setWord} />`}
      <div class="actions">
        <button type="button" onClick=${() => close(false)} data-cancel>Cancel</button>
        <button type="submit" class=${isDangerous ? "danger" : "primary"} disabled=${word !== typed} data-test="confirm-yes">${action}</button>
      </div>
    </form>
  <//>`;
}

const closeAll = () => open.get().forEach(({ close }) => close());

/** Where opened dialogs are drawn: once in the page. They belong to the page on which they were opened, and to its user. */
export function Dialogs() {
  useEffect(() => {
    window.addEventListener("hashchange", closeAll);
    const unsubscribe = session.subscribe(() => session.get() === null && closeAll());
    return () => {
      window.removeEventListener("hashchange", closeAll);
      unsubscribe();
    };
  }, []);
  return useStore(open).map(({ id, draw, close }) => html`<div key=${id}>${draw(close)}</div>`);
}
