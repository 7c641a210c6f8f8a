// The cluster, as far as all pages need it: whether there is one, and which answers are old or incomplete.

import { store } from "./store.js";

/** True if a vhost of the user has several members. Without a cluster no page shows anything about one. */
export const isInCluster = store(false);

/** How many nodes have vhosts of the user. */
export const clusterSize = store(0);

/** Learns from a list of vhosts, with their `members`, whether there is a cluster, and of how many nodes. */
export function seeVhosts(vhosts) {
  isInCluster.set(vhosts.some(({ members = [] }) => members.length > 1));
  clusterSize.set(new Set(vhosts.flatMap(({ members = [] }) => members)).size);
}

/** Answers on this page that are not whole, by their address: `{ isStale, missing }`. */
export const partial = store(new Map());

/** Keeps that an answer comes from a replica (`isStale`), or lacks the parts of nodes (`missing`, a text); true if so. */
export function hearPart(url, part) {
  const isPartial = part.isStale || Boolean(part.missing);
  if (isPartial) partial.set((all) => new Map(all).set(url, part));
  else forgetPart(url);
  return isPartial;
}

/** Forgets an answer that is not shown any more. */
export function forgetPart(url) {
  partial.set((all) => {
    if (!all.has(url)) return all;
    const rest = new Map(all);
    rest.delete(url);
    return rest;
  });
}
