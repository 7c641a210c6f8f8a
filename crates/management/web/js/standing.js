// How the page stands to its broker: bars above each page, which come and go by themselves.

import { get, path } from "./api.js";
import { away, tryNow } from "./away.js";
import { isInCluster, partial } from "./cluster.js";
import { moment } from "./format.js";
import { html, useEffect, useState } from "./html.js";
import { usePolled } from "./poll.js";
import { refreshMs } from "./settings.js";
import { useStore } from "./store.js";
import { isOutdated, reload } from "./version.js";

const VHOSTS_MS = 30_000;
const METADATA_MS_MIN = 5000;

/** "Next try in 5 s.", each second anew: also while all other clocks of the page stand still. */
function NextTry({ at }) {
  const [, again] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => again((count) => count + 1), 250);
    return () => clearInterval(timer);
  }, []);
  return at === 0 ? "Trying now." : `Next try in ${Math.max(1, Math.ceil((at - Date.now()) / 1000))} s.`;
}

/** Says that the broker is away, and when the page tries again. */
export function AwayBar() {
  const state = useStore(away);
  if (!state) return null;
  // Screen readers are told the sentence once, not each second of the countdown.
  return html`<div class="errors" data-test="away"><p class="error-line">
    <span><span role="alert" data-test=${state.isStopped ? "stopped" : undefined}>${state.reason}</span>
      ${" "}<span data-test="next-try"><${NextTry} at=${state.nextAt} /></span>
      ${state.answeredAt > 0 && html` <span class="muted">Last answer: ${moment(state.answeredAt)}.</span>`}</span>
    <button type="button" class="quiet" onClick=${tryNow} data-test="try-now">Try now</button></p></div>`;
}

/** Says that the page is that of an earlier version, while a reload would lose what is being typed. */
export function OutdatedBar() {
  return useStore(isOutdated) && html`<p class="banner banner-line warning" role="status" data-test="outdated">
    <span>The broker was updated. This page is of the version before; it is loaded again as soon as you leave it.</span>
    <button type="button" onClick=${reload} data-test="reload">Reload now</button></p>`;
}

/** Says why all lists are empty for a user without permissions. */
export function NoVhosts() {
  const { data } = usePolled(`${path("vhosts")}?columns=name`, VHOSTS_MS);
  return data?.length === 0 && html`<p class="banner warning" role="status" data-test="no-vhosts">
    You have no access to any virtual host: an administrator can give you permissions.</p>`;
}

/** True while the node knows no leader of users and vhosts. */
function useIsWithoutMetadata() {
  const every = Math.max(useStore(refreshMs), METADATA_MS_MIN);
  const [isWithout, setIsWithout] = useState(false);
  useEffect(() => {
    let isOver = false;
    const ask = async () => {
      if (document.hidden || away.get()) return;
      const status = await get(path("health", "checks", "metadata-store", "initialized")).then(() => 200, (error) => error.status);
      // Any other answer tells nothing about a leader.
      if (!isOver && (status === 200 || status === 503)) setIsWithout(status === 503);
    };
    ask();
    const forget = away.subscribe(ask);
    const timer = setInterval(ask, every);
    document.addEventListener("visibilitychange", ask);
    return () => {
      isOver = true;
      forget();
      clearInterval(timer);
      document.removeEventListener("visibilitychange", ask);
    };
  }, [every]);
  return isWithout;
}

/** The nodes that lists lack, each once. */
const missingIn = (answers) => [...new Set(answers.flatMap(({ missing }) => missing?.split(", ") ?? []))].sort();

function Bars() {
  const isWithout = useIsWithoutMetadata();
  const answers = [...useStore(partial).values()];
  const missing = missingIn(answers);
  const isStale = answers.some((answer) => answer.isStale);
  return html`${isWithout && html`<p class="banner danger" role="alert" data-test="no-metadata">
      This node knows no leader of users and virtual hosts: fewer than a majority of the nodes are connected. What it has can be read;
      users, virtual hosts and parameters cannot be changed.</p>`}
    ${isStale && html`<p class="banner warning" role="status" data-test="stale-answer">
      The leader of the virtual host cannot be asked. Values on this page come from the replica of this node and may be old.</p>`}
    ${missing.length > 0 && html`<p class="banner warning" role="status" data-test="incomplete-answer">
      Lists and sums on this page are incomplete: ${missing.join(", ")} did not answer in time.</p>`}`;
}

/** Says what is wrong with the cluster, as far as it concerns all pages. */
export const ClusterBars = () => useStore(isInCluster) && html`<${Bars} />`;
