// Above a list: the filter, and the pages.

import { Waiting } from "../components.js";
import { count, number } from "../format.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { PAGE_SIZES } from "./view.js";

const FILTER_MS = 250;

/** The text field of a filter; the text applies a moment after the last key. */
export function Filter({ value, isRegex, onChange, label = "Filter by name" }) {
  const [text, setText] = useState(value);
  const timer = useRef(0);
  // At once: an effect that runs after the next picture would replace what was typed until then.
  useLayoutEffect(() => setText(value), [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const type = (next) => {
    setText(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => onChange({ name: next }), FILTER_MS);
  };
  return html`<div class="filter" role="search">
    <input type="search" data-filter data-test="filter" value=${text} placeholder=${label} aria-label=${label} spellcheck=${false} autocomplete="off"
      onInput=${(event) => type(event.target.value)} />
    <label class="check" title="Use the text as a regular expression"><input type="checkbox" checked=${isRegex} data-test="regex"
      onInput=${(event) => onChange({ isRegex: event.target.checked })} /><span>Regex</span></label>
  </div>`;
}

/** The number of rows, the page with its number to type, and the size of a page. Without a total nothing is known yet. */
export function Pager({ page, pages, shown, total, size, noun, onChange }) {
  if (total === undefined) return html`<nav class="pager" aria-label="Pages"><span class="muted" data-test="count"><${Waiting} later="" /></span></nav>`;
  const text = shown === total ? count(total, noun) : `${number(shown)} of ${count(total, noun)}`;
  const turn = (to) => onChange({ page: Math.min(pages, Math.max(1, Math.floor(Number(to)) || 1)) });
  return html`<nav class="pager" aria-label="Pages">
    <span class="muted" data-test="count">${text}</span>
    ${pages > 1 && html`<button type="button" disabled=${page <= 1} onClick=${() => turn(page - 1)} data-test="previous">Previous</button>
      <${PageNumber} page=${page} pages=${pages} onTurn=${turn} />
      <button type="button" disabled=${page >= pages} onClick=${() => turn(page + 1)} data-test="next">Next</button>`}
    ${shown > PAGE_SIZES[0] && html`<label class="page-size"><select value=${size} aria-label="Rows on a page" data-test="page-size"
      onInput=${(event) => onChange({ size: Number(event.target.value) })}>${PAGE_SIZES.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select> per page</label>`}
  </nav>`;
}

/** The number of the page, and a field for another one. A refresh of the list leaves a number that is being typed. */
function PageNumber({ page, pages, onTurn }) {
  const [typed, setTyped] = useState(null);
  const turn = (event) => {
    setTyped(null);
    onTurn(event.target.value);
  };
  return html`<label class="page-number">Page <input type="number" inputmode="numeric" min="1" max=${pages} value=${typed ?? page} aria-label="Number of the page"
    onInput=${(event) => setTyped(event.target.value)} onChange=${turn} data-test="page-number" /> of ${number(pages)}</label>`;
}
