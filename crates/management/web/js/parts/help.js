// The `?` beside a term, the help of a list with its legend, and the footer with links to the documentation.

import { Dialog, openDialog } from "../dialog.js";
import { helpFor } from "../help-texts.js";
import { classes, html } from "../html.js";

/** The address of a page of the documentation, which the broker serves itself. */
const address = (docs) => `docs/${docs.replace(/(#|$)/, ".html$1")}`;

/** A link to a page of the documentation. */
export const DocsLink = ({ docs, children }) => html`<a href=${address(docs)} target="_blank" rel="noopener" data-test="help-docs">${children}</a>`;

const Entry = ({ term, entry }) => html`<div><dt>${term}</dt><dd>${entry.text} <${DocsLink} docs=${entry.docs}>More<span class="sr-only"> about ${term}</span><//></dd></div>`;

/** Shows the help for some terms, and a legend of badges: `[letters, words]`. */
function show(title, terms, legend) {
  openDialog((close) => html`<${Dialog} title=${title} onClose=${() => close()} test="help-dialog">
    ${legend.length > 0 && html`<dl class="help-legend">${legend.map(([letters, words]) => html`<div key=${letters}>
      <dt><span class="badge">${letters}</span></dt><dd>${words}</dd></div>`)}</dl>`}
    ${terms.length > 0 && html`<dl class="help-list">${terms.map((term) => html`<${Entry} key=${term} term=${term} entry=${helpFor(term)} />`)}</dl>`}
  <//>`);
}

/** A button that explains a label; nothing for a label without a help text. */
export function Help({ term }) {
  if (typeof term !== "string" || !helpFor(term)) return null;
  return html`<button type="button" class="help" aria-label=${`Help: ${term}`} data-test="help" onClick=${(event) => {
    // A tile may be a link.
    event.preventDefault();
    event.stopPropagation();
    show(term, [term], []);
  }}>?</button>`;
}

/** A button that explains the columns of a list, and the badges in it. */
export function ListHelp({ columns }) {
  const legend = columns.flatMap((column) => column.legend ?? []);
  const terms = columns.map(({ name, title }) => name ?? title).filter((title, at, all) => helpFor(title) && all.indexOf(title) === at);
  if (terms.length === 0 && legend.length === 0) return null;
  return html`<button type="button" class=${classes("help", "is-list")} aria-label="Help: columns and badges" data-test="list-help"
    onClick=${() => show(legend.length > 0 ? "Badges and columns" : "Columns", terms, legend)}>?</button>`;
}

/** A button that explains badges. */
export const LegendHelp = ({ legend }) => html`<button type="button" class="help" aria-label="Help: badges" data-test="legend"
  onClick=${() => show("Badges", [], legend)}>?</button>`;

/** Links out of the page, at its end. */
export const Footer = ({ version }) => html`<footer class="foot" data-test="footer">
  <a href="docs/index.html" target="_blank" rel="noopener" data-test="footer-docs">Documentation</a>
  <a href="api/index.html" target="_blank" rel="noopener" data-test="footer-api">HTTP API</a>
  <a href="docs/COMPATIBILITY.html" target="_blank" rel="noopener">Compatibility with RabbitMQ</a>
  <a href="docs/CHANGELOG.html" target="_blank" rel="noopener" data-test="footer-version">Leveret ${version}</a>
</footer>`;
