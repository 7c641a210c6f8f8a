// Small parts that pages are made of.

import { away } from "./away.js";
import { classes, html, useLayoutEffect, useRef } from "./html.js";
import { DASH, percent, plain, visible } from "./format.js";
import { Help } from "./parts/help.js";
import { isLost, Lost } from "./parts/lost.js";
import { href } from "./router.js";
import { useStore } from "./store.js";

/** Stands for what is not there yet: a text, or while the broker is away that this is so. */
export const Waiting = ({ text = "Loading\u2026", later = "Shown when the broker answers." }) => {
  const isAway = useStore(away) !== null;
  return isAway ? later : text;
};

/**
 * A page: its title (also of the window), what leads to it, its actions, its content. A page about one thing gives
 * what it `polled`: while there is no such thing, the page says so (`gone`) and nothing else. `vhost` is where the
 * thing is.
 */
export function Page({ title, crumbs = [], badges, actions, children, test, polled, gone, vhost }) {
  const heading = useRef(null);
  useLayoutEffect(() => {
    document.title = `${title} \u00b7 Leveret`;
  }, [title]);
  // Keyboards and screen readers start at the title.
  useLayoutEffect(() => heading.current.focus({ preventScroll: true }), []);
  const hasThing = !polled || (polled.data !== undefined && !isLost(polled));
  return html`<article class="page" data-test=${test}>
    <header class="page-head">
      <div>
        ${crumbs.length > 0 && html`<p class="crumbs">${crumbs.map(([text, address], index) => html`<span key=${index}>${address ? html`<a href=${address}>${visible(text)}</a>` : visible(text)}</span>`)}</p>`}
        <h1 tabindex="-1" ref=${heading}>${visible(title)}</h1>${hasThing && badges}
      </div>
      ${hasThing && actions && html`<div class="actions">${actions}</div>`}
    </header>
    ${isLost(polled) ? html`<${Lost} error=${polled.error} gone=${gone} vhost=${vhost} />` : children}
  </article>`;
}

/** A part of a page with a title. */
export const Card = ({ title, actions, children, isWide = false, test }) => html`
  <section class=${classes("card", isWide && "is-wide")} data-test=${test}>
    ${(title || actions) && html`<header><h2>${title}<${Help} term=${title} /></h2>${actions && html`<div class="actions">${actions}</div>`}</header>`}
    ${children}</section>`;

/** A word in a box: `kind` is one of good, warning, danger, accent, or nothing. */
export const Badge = ({ kind = "", title, children }) => html`<span class=${classes("badge", kind)} title=${title}>${children}</span>`;

/** A number with its name, large; `total` is a sum beside a rate. */
export const Stat = ({ label, value, total, hint, href: address, test }) => {
  const shown = html`<span class="stat-value">${value}</span>${total !== undefined && html`<span class="stat-total" data-test=${`${test}-total`}>${total} in total</span>`}<span class="stat-label">${label}</span>`;
  return html`<div class=${classes("stat", address && "is-link")} title=${hint} data-test=${test}>
    ${address ? html`<a href=${address}>${shown}</a>` : shown}<${Help} term=${label} /></div>`;
};

/** Names and values: `items` are `[name, value]`; what has no value is left out. */
export const Facts = ({ items }) => html`<dl class="facts">${items
  .filter(([, value]) => value !== undefined && value !== null && value !== "")
  .map(([name, value]) => html`<div key=${name}><dt>${name}<${Help} term=${name} /></dt><dd>${value}</dd></div>`)}</dl>`;

/** A table of arguments or headers. */
export const Values = ({ table, empty = "none" }) => {
  const entries = Object.entries(table ?? {});
  if (entries.length === 0) return html`<span class="muted">${empty}</span>`;
  return html`<dl class="values">${entries.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${plain(value)}</dd></div>`)}</dl>`;
};

/** Tabs that are pages: `items` are `[name, title, address]`. */
export const Tabs = ({ items, current }) => html`<nav class="tabs" aria-label="Parts of this page">${items.map(([name, title, address]) => html`
  <a key=${name} href=${address} aria-current=${name === current ? "page" : undefined} data-test=${`tab-${name}`}>${title}</a>`)}</nav>`;

/** How much of something is used, as a bar with words. */
export const Meter = ({ used, total, label, text, isBad = false }) => {
  const share = total > 0 ? Math.min(1, used / total) : 0;
  return html`<div class=${classes("meter", isBad && "is-bad")} role="img" aria-label=${`${label}: ${text ?? percent(share)}`}>
    <span class="meter-bar"><span style=${{ width: `${share * 100}%` }}></span></span>
    <span class="meter-text">${text ?? percent(share)}</span></div>`;
};

/** A state in a word, with a dot in a colour that says the same. */
export const State = ({ kind = "", children }) => html`<span class=${classes("state", kind)}>${children}</span>`;

/**
 * What a poll brought: `children` is a function of the data. Before there are data it says so; of what is
 * not there (404) it says that it is `gone`.
 */
export function Loaded({ polled, children, gone, vhost }) {
  if (isLost(polled)) return html`<${Lost} error=${polled.error} gone=${gone} vhost=${vhost} />`;
  if (polled.data === undefined) {
    return polled.error ? html`<p class="empty">${polled.error.message}</p>` : html`<p class="empty" aria-busy="true"><${Waiting} /></p>`;
  }
  return html`<div class=${classes("loaded", polled.isStale && "is-stale")}>${children(polled.data)}</div>`;
}

/** Links to things, by their names. */
export const QueueLink = ({ vhost, name, tab }) => html`<a href=${href("queues", vhost, name, ...(tab ? [tab] : []))} title=${name}>${visible(name)}</a>`;
export const ExchangeLink = ({ vhost, name }) => html`<a href=${href("exchanges", vhost, name || "amq.default")} title=${name}>${visible(name) || "(default exchange)"}</a>`;
export const ConnectionLink = ({ name }) => (name ? html`<a href=${href("connections", name)} title=${name}>${visible(name)}</a>` : DASH);
export const ChannelLink = ({ name, text = name }) => (name ? html`<a href=${href("channels", name)} title=${name}>${visible(text)}</a>` : DASH);
export const UserLink = ({ name }) => (name ? html`<a href=${href("admin", "users", name)} title=${name}>${visible(name)}</a>` : DASH);
