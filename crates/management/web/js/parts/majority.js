// Which vhosts have a majority of their voters, and what would be gone without a node.

import { number, visible } from "../format.js";

const NAMED_MAX = 5;

/** The name of the group of users, vhosts and parameters among the replicas; a vhost may have it, too. */
export const METADATA = "metadata";

/** True for a replica of that group. */
export const isOfMetadata = (replica) => replica.group === METADATA;

/** How many voters are a majority. */
const majorityOf = (voters) => Math.floor(voters.length / 2) + 1;

/** A replica that must be rebuilt before it counts. */
const isBroken = (replica) => replica?.state === "quarantined";

/** The newest of the replicas that know who votes. */
function newest(replicas) {
  const knowing = replicas.filter(({ voters }) => voters?.length > 0);
  return knowing.reduce((best, one) => (!best || one.term > best.term ? one : best), undefined);
}

/**
 * What is known of a vhost with its `members`, of the `replicas` that are told of it: `voters`; `up`, those that run, have a
 * replica that can be used, and are heard by the leader if there is one; and `copies`, those whose replica can be used, up or
 * not. Without replicas all members count. `running` is a set of names of nodes.
 */
export function quorumOf(vhost, replicas, running) {
  const told = new Map(replicas.map((replica) => [replica.node, replica]));
  const leading = newest(replicas.filter(({ state, node }) => state === "leader" && running.has(node)));
  const voters = (leading ?? newest(replicas))?.voters ?? vhost.members;
  const isHeard = (node) => (leading?.heard ? leading.heard.includes(node) : replicas.length === 0 || told.has(node));
  const copies = voters.filter((node) => !isBroken(told.get(node)));
  return { ...vhost, voters, copies, up: copies.filter((node) => running.has(node) && isHeard(node)) };
}

/** The same for all vhosts; `replicas` is what `/api/replicas` tells, or nothing as long as it is not there. */
export function quorumsOf(vhosts, replicas, running) {
  const byVhost = Map.groupBy((replicas ?? []).filter((one) => !isOfMetadata(one)), ({ vhost }) => vhost);
  return vhosts.map((vhost) => quorumOf(vhost, byVhost.get(vhost.name) ?? [], running));
}

/** Names of the nodes that run. */
export const runningOf = (nodes) => new Set(nodes.filter(({ running }) => running).map(({ name }) => name));

/** True if a majority of the voters is up. */
export const hasMajority = ({ voters, up }) => up.length >= majorityOf(voters);

/** True if that is so only as long as this node is up. */
const needs = (quorum, node) => hasMajority(quorum) && quorum.up.includes(node) && quorum.up.length - 1 < majorityOf(quorum.voters);

/** How many voters are up, `[colour, words]`. */
export function majorityState(quorum) {
  const { members, voters, up } = quorum;
  const words = `${number(up.length)} of ${number(voters.length)} ${voters.length === members.length ? "" : "voters "}run`;
  if (!hasMajority(quorum)) return ["danger", `${words}: no majority`];
  return up.length - 1 < majorityOf(voters) ? ["warning", `${words}: none may stop`] : ["good", words];
}

/**
 * What a node that goes takes with it, as lists of vhosts: those of which it has the `only` copy, other `lost` ones without a
 * majority then, and `moved` ones that get another leader. Those that have no majority now are in none of these but `only`.
 */
export function lossOf(node, quorums) {
  const only = quorums.filter(({ copies }) => copies.length === 1 && copies[0] === node);
  const lost = quorums.filter((quorum) => !only.includes(quorum) && needs(quorum, node));
  const moved = quorums.filter((quorum) => quorum.leader === node && !only.includes(quorum) && !lost.includes(quorum) && hasMajority(quorum));
  return { only, lost, moved };
}

/** Names of vhosts in a sentence, the first few of them. */
export const named = (vhosts) => {
  const more = vhosts.length - NAMED_MAX;
  return vhosts.slice(0, NAMED_MAX).map(({ name }) => visible(name)).join(", ") + (more > 0 ? ` and ${number(more)} more` : "");
};
