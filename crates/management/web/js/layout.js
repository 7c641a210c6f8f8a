// What is around every page: navigation, vhost, refreshing, theme, user.

import { path } from "./api.js";
import { Page } from "./components.js";
import { clusterSize, isInCluster, seeVhosts } from "./cluster.js";
import { Dialogs } from "./dialog.js";
import { ErrorBar, Fenced, Notes } from "./errors.js";
import { html, useEffect, useState } from "./html.js";
import { count } from "./format.js";
import { help } from "./keys.js";
import { Login } from "./login.js";
import { AlarmBar, AlarmDot } from "./parts/alarm.js";
import { Footer } from "./parts/help.js";
import { grant } from "./permissions.js";
import { usePolled } from "./poll.js";
import { href, place } from "./router.js";
import { chosenVhost, doubts, hasTag, isAdministrator, isMonitor, isPolicymaker, leave, leaveInTime, session, setTags } from "./session.js";
import { AwayBar, ClusterBars, NoVhosts, OutdatedBar } from "./standing.js";
import { REFRESH_CHOICES, refreshMs, theme } from "./settings.js";
import { useStore } from "./store.js";

const NAVIGATION = [
  ["", [
    ["overview", "Overview", []],
    ["queues", "Queues", ["queues"]],
    ["exchanges", "Exchanges", ["exchanges"]],
    ["scheduled", "Scheduled", ["scheduled"]],
    ["connections", "Connections", ["connections"]],
    ["channels", "Channels", ["channels"]],
  ]],
  ["Dead letters", [
    ["dead-letters", "Map", ["dead-letters"]],
    ["dead-letter-queues", "Dead-letter queues", ["dead-letters", "queues"]],
    ["dead-letter-history", "History", ["dead-letters", "history"]],
    ["redrives", "Redrives", ["redrives"]],
  ]],
  ["Node", [
    ["nodes", "Nodes", ["nodes"], isMonitor],
    ["replicas", "Replicas", ["replicas"], () => isMonitor() && isInCluster.get()],
    ["health", "Health", ["health"]],
  ]],
  ["Admin", [
    ["users", "Users", ["admin", "users"], isAdministrator],
    ["vhosts", "Virtual hosts", ["admin", "vhosts"]],
    ["policies", "Policies", ["admin", "policies"]],
    ["limits", "Limits", ["admin", "limits"]],
    ["definitions", "Definitions", ["admin", "definitions"], isAdministrator],
    ["parameters", "Parameters", ["admin", "parameters"], isPolicymaker],
    ["features", "Features", ["admin", "features"]],
    ["logins", "Logins", ["admin", "logins"], isMonitor],
  ]],
];

const VHOSTS_MS = 30_000;

function Navigation({ section, onGo }) {
  useStore(isInCluster);
  return html`<nav class="sections" aria-label="Sections">${NAVIGATION.map(([title, entries]) => {
    const seen = entries.filter(([, , , isFor]) => !isFor || isFor());
    return seen.length > 0 && html`<div key=${title}>${title && html`<h2>${title}</h2>`}
      <ul>${seen.map(([key, name, names]) => html`<li key=${key}>
        <a href=${href(...names)} aria-current=${key === section ? "page" : undefined} onClick=${onGo} data-test=${`nav-${key}`}>${name}</a></li>`)}</ul></div>`;
  })}</nav>`;
}

/** The vhost that lists are limited to. */
function VhostChoice() {
  const chosen = useStore(chosenVhost);
  const { data } = usePolled(`${path("vhosts")}?columns=name,members&disable_stats=true`, VHOSTS_MS);
  const names = (data ?? []).map((vhost) => vhost.name);
  useEffect(() => {
    if (data) seeVhosts(data);
  }, [data]);
  useEffect(() => {
    if (data && chosen && !names.includes(chosen)) chosenVhost.set("");
  }, [data, chosen]);
  const all = chosen && !names.includes(chosen) ? [chosen, ...names] : names;
  return html`<label class="picker"><span>Vhost</span>
    <select value=${chosen} onInput=${(event) => chosenVhost.set(event.target.value)} data-test="vhost">
      <option value="" selected=${chosen === ""}>all</option>
      ${all.map((name) => html`<option key=${name} value=${name} label=${name} selected=${name === chosen}>${name}</option>`)}</select></label>`;
}

function RefreshChoice() {
  const chosen = useStore(refreshMs);
  return html`<label class="picker"><span>Refresh</span>
    <select value=${chosen} onInput=${(event) => refreshMs.set(Number(event.target.value))} data-test="refresh">
      ${REFRESH_CHOICES.map(([ms, title]) => html`<option key=${ms} value=${ms} selected=${ms === chosen}>${title}</option>`)}</select></label>`;
}

function ThemeChoice() {
  const chosen = useStore(theme);
  return html`<label class="picker"><span>Colours</span>
    <select value=${chosen} onInput=${(event) => theme.set(event.target.value)} data-test="theme">
      ${[["auto", "system"], ["light", "light"], ["dark", "dark"]].map(([key, title]) => html`<option key=${key} value=${key} selected=${key === chosen}>${title}</option>`)}</select></label>`;
}

function UserMenu({ user }) {
  return html`<details class="menu user" data-test="user-menu"><summary>${user.name}</summary><div class="menu-box">
    <p class="muted">${user.tags.join(", ") || "no tags"}</p>
    <${ThemeChoice} />
    <button type="button" class="quiet" onClick=${help}>Keyboard shortcuts</button>
    <button type="button" class="quiet" onClick=${() => leave()} data-test="logout">Log out</button></div></details>`;
}

const titleOf = (section) => NAVIGATION.flatMap(([, entries]) => entries).find(([key]) => key === section)?.[1] ?? section;

/** The page of an address, or why this user cannot see it. */
function Current() {
  const { key, Shown, params, section, tag } = useStore(place);
  if (!Shown) return html`<p class="empty" data-test="no-page">This page does not exist.</p>`;
  if (!hasTag(tag)) return html`<${Page} title=${titleOf(section)}><p class="empty" data-test="no-tag">You need the tag ${tag} for this page.</p><//>`;
  return html`<${Fenced} key=${key} name="This page"><${Shown} key=${key} params=${params} /><//>`;
}

/** The tags and permissions as they are now. */
function useTags() {
  const { data, refresh } = usePolled(path("whoami"), VHOSTS_MS);
  const doubted = useStore(doubts);
  useEffect(() => {
    if (doubted > 0) refresh();
  }, [doubted]);
  useEffect(() => {
    if (!data) return;
    leaveInTime();
    setTags(data.tags);
    grant(data.permissions);
  }, [data]);
}

/** A cluster that was given no name is called as one of its nodes, which may be gone. */
const IS_OF_A_NODE = /^[^\s@]+@[^\s@]+$/;

/** The name of the cluster, or how many nodes it has. */
function ClusterName({ name }) {
  const nodes = useStore(clusterSize);
  if (nodes < 2 || (name && !IS_OF_A_NODE.test(name))) return html`<span title="Cluster name" data-test="cluster-name">${name}</span>`;
  return html`<span title="The cluster was given no name: rabbitmqctl set_cluster_name" data-test="cluster-name">cluster of ${count(nodes, "node")}</span>`;
}

/** The session may be over before the frame is gone, so that the user comes from above. */
function Frame({ user }) {
  const { section, key } = useStore(place);
  const [isOpen, setIsOpen] = useState(false);
  useEffect(() => setIsOpen(false), [key]);
  const { data } = usePolled(`${path("overview")}?columns=cluster_name,leveret_version&disable_stats=true`, VHOSTS_MS);
  useTags();
  return html`<div class=${isOpen ? "frame is-open" : "frame"}>
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <header class="top">
      <button type="button" class="quiet burger" aria-expanded=${isOpen} aria-label="Sections" onClick=${() => setIsOpen(!isOpen)}>\u2630</button>
      <a class="brand" href="#/"><img src="img/leveret.svg" alt="" width="26" height="26" /><b>Leveret</b>
        <span class="muted">${data?.leveret_version}</span></a>
      <span class="cluster muted"><${AlarmDot} /><${ClusterName} name=${data?.cluster_name} /></span>
      <span class="gap"></span>
      <${VhostChoice} /><${RefreshChoice} /><${UserMenu} user=${user} />
    </header>
    <aside class="side"><${Navigation} section=${section} onGo=${() => setIsOpen(false)} /></aside>
    <main id="main" tabindex="-1">
      <${AwayBar} />
      <${OutdatedBar} />
      <${NoVhosts} />
      <${ErrorBar} />
      <${AlarmBar} />
      <${ClusterBars} />
      <${Current} />
      <${Footer} version=${data?.leveret_version} />
    </main>
  </div>`;
}

/** The link's address would be taken for a page. */
function skip(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

/** Everything. */
export function App() {
  const user = useStore(session);
  return html`${user ? html`<${Frame} key=${user.name} user=${user} />` : html`<${Login} />`}<${Dialogs} /><${Notes} />`;
}
