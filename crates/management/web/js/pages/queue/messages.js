// The messages of a queue, page by page, without disturbing them: looking changes nothing.

import { count, number } from "../../format.js";
import { Waiting } from "../../components.js";
import { classes, html, useEffect, useMemo, useState } from "../../html.js";
import { filterOf, Filters, STATES } from "../../parts/message-filter.js";
import { Message } from "../../parts/browsed-message.js";
import { openReasons } from "../../parts/given-reasons.js";
import { openRedrive } from "../../parts/redrive-dialog.js";
import { PAGE_SIZE, useBrowse } from "../../parts/browse.js";
import { place, setQuery } from "../../router.js";
import { useStore } from "../../store.js";

const NONE = {
  ready: "No ready messages.",
  unacknowledged: "No unacknowledged messages.",
  delayed: "No delayed messages.",
  dead: "No dead letters awaiting delivery.",
};

/** The tab. Another queue is another component. */
export default function Messages({ vhost, name }) {
  const { query } = useStore(place);
  const filter = useMemo(() => filterOf(query), [String(query)]);
  const [open, setOpen] = useState(() => new Set());
  const [chosen, setChosen] = useState(() => new Map());
  const browse = useBrowse(vhost, name, filter, open.size > 0 || chosen.size > 0);
  // What was chosen may not be in what is shown now.
  useEffect(() => {
    setOpen(new Set());
    setChosen(new Map());
  }, [String(query)]);
  const toggleOpen = (id) => setOpen((old) => toggled(old, id));
  const toggleChosen = (message) => setChosen((old) => {
    const next = new Map(old);
    if (!next.delete(message.id)) next.set(message.id, message);
    return next;
  });
  const all = browse.messages.length > 0 && browse.messages.every(({ id }) => chosen.has(id));
  const toggleAll = () => setChosen((old) => {
    const next = new Map(old);
    for (const message of browse.messages) {
      if (all) next.delete(message.id);
      else next.set(message.id, message);
    }
    return next;
  });
  const isKept = filter.state === "dead";
  const canRedrive = filter.state === "ready" || isKept;
  // Messages that have not died have no origin to return to: they are moved.
  const have = (messages) => messages.some(({ deaths }) => deaths?.length > 0);
  const verbOf = (messages) => (isKept || have(messages) ? "Redrive" : "Move");
  const redrive = async (ids) => {
    const isMove = !isKept && !have(ids ? [...chosen.values()] : browse.messages);
    const hasBegun = await openRedrive({ vhost, queue: name, ids, filter, isMove, isKept });
    if (!hasBegun) return;
    setChosen(new Map());
    browse.refresh();
  };
  return html`<section class="browse" data-test="messages">
    <div class="segments" role="group" aria-label="Which messages">${STATES.map(([key, title]) => html`
      <button type="button" key=${key} aria-pressed=${filter.state === key} data-test=${`state-${key}`}
        onClick=${() => setQuery({ state: key === "ready" ? null : key })}>${title}</button>`)}</div>
    <${Filters} filter=${filter} isSearching=${browse.isSearching} />
    <div class="toolbar browse-bar">
      ${canRedrive && browse.messages.length > 0 && html`<label class="check"><input type="checkbox" checked=${all} onInput=${toggleAll} data-test="choose-all" /><span>All on this page</span></label>
        <button type="button" class="primary" disabled=${chosen.size === 0} onClick=${() => redrive([...chosen.keys()])} data-test="redrive-chosen">
          ${chosen.size === 0 ? `${verbOf(browse.messages)} selected\u2026` : `${verbOf([...chosen.values()])} ${count(chosen.size, "message")}\u2026`}</button>
        <button type="button" onClick=${() => redrive(null)} data-test="redrive-all">${`${verbOf(browse.messages)} all${filter.isFiltered ? " that match" : ""}\u2026`}</button>`}
      ${canRedrive && browse.messages.length > 0 && html`<button type="button" onClick=${() => openReasons({ vhost, queue: name, isKept })} data-test="reasons">By reason\u2026</button>`}
      <span class="gap"></span>
      <${Where} browse=${browse} filter=${filter} isHeld=${open.size > 0 || chosen.size > 0} />
    </div>
    ${browse.error && html`<p class="form-error" role="alert" data-test="browse-error">${browse.error.message}</p>`}
    <ol class=${classes("browsed", browse.isLoading && "is-loading")} aria-busy=${browse.isLoading}>
      ${browse.messages.map((message) => html`<${Message} key=${message.id} message=${message} vhost=${vhost} queue=${name}
        isOpen=${open.has(message.id)} onToggle=${() => toggleOpen(message.id)}
        isChosen=${chosen.has(message.id)} onChoose=${canRedrive ? () => toggleChosen(message) : null} />`)}
    </ol>
    ${browse.messages.length === 0 && !browse.error && html`<p class="empty" data-test="none">
      ${browse.isLoading || browse.isSearching ? html`<${Waiting} text="Searching\u2026" />` : filter.isFiltered ? "No match for the filter." : NONE[filter.state]}</p>`}
    <${Pages} browse=${browse} />
  </section>`;
}

const toggled = (set, value) => {
  const next = new Set(set);
  if (!next.delete(value)) next.add(value);
  return next;
};

/** How much has been searched, and whether the list follows the queue. */
function Where({ browse, filter, isHeld }) {
  const { messages, scanned, total, isSearching, at } = browse;
  const text = filter.isFiltered
    ? `${count(messages.length, "match", "matches")}; ${number(scanned)} of ${number(total)} searched`
    : total === undefined ? "" : `${number(messages.length)} of ${count(total, "message")}`;
  return html`<span class="muted" data-test="browse-count">${text}${isHeld && !isSearching && at > 0 ? " \u00b7 the list is not refreshed while a message is open or selected" : ""}</span>
    ${isSearching
      ? html`<button type="button" onClick=${browse.stop}>Stop</button>`
      : html`<button type="button" onClick=${browse.refresh} data-test="refresh">Refresh</button>`}`;
}

function Pages({ browse }) {
  if (browse.page === 0 && !browse.hasMore) return null;
  return html`<nav class="pager" aria-label="Pages">
    <button type="button" disabled=${browse.page === 0} onClick=${browse.previous} data-test="previous">Previous</button>
    <span>Page ${number(browse.page + 1)}</span>
    <button type="button" disabled=${!browse.hasMore || browse.isSearching} onClick=${browse.next} data-test="next">Next</button>
    <span class="muted">${PAGE_SIZE} messages per page, in the order of delivery</span></nav>`;
}
