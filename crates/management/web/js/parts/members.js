// The members of a vhost with the states of their replicas: in lists, and as a card of the vhost or of one of its queues.

import { path, withQuery } from "../api.js";
import { Card, Facts, State } from "../components.js";
import { bytes, count, percent } from "../format.js";
import { html } from "../html.js";
import { usePolled } from "../poll.js";
import { href } from "../router.js";
import { isAdministrator, isMonitor } from "../session.js";
import { exactly } from "./consequences.js";
import { transfer } from "./leads.js";
import { isOfMetadata, majorityState, quorumOf, runningOf } from "./majority.js";
import { addMember, removeMember } from "./placement.js";

const KINDS = { leader: "good", follower: "good", promoting: "warning", candidate: "warning", deposed: "danger", quarantined: "danger" };

/** The state of a member that is not used yet, `[colour, words]`; nothing for other ones. */
function rebuilding(replica, isVoter) {
  const { rebuild } = replica;
  if (rebuild) return ["warning", `is being rebuilt, ${percent(Math.min(1, rebuild.received_bytes / Math.max(1, rebuild.total_bytes)))}`];
  if (replica.state === "quarantined") return ["danger", "waits to be rebuilt"];
  return !isVoter && replica.state === "follower" ? ["warning", "catches up, does not vote yet"] : undefined;
}

/** A member of a vhost: its state, and how far it is behind the leader. */
export function memberOf(node, replica, leader, isRunning, isVoter) {
  if (!isRunning) return { node, kind: "danger", state: "unreachable" };
  if (!replica) return { node, kind: "", state: "does not tell" };
  const rebuilt = rebuilding(replica, isVoter);
  // How far it is behind is known once it has files.
  if (rebuilt && replica.state === "quarantined") return { node, kind: rebuilt[0], state: rebuilt[1], replica };
  const behind = leader?.lags[node] ?? Math.max(0, (leader?.committed_index ?? 0) - replica.written_index);
  const [kind, state] = rebuilt ?? [KINDS[replica.state] ?? "", replica.state];
  return { node, kind, state, behind, unapplied: replica.unapplied_bytes, replica };
}

/** Members, as `memberOf` gives them, with how far each is behind. With `onRemove`, each can be removed. */
export const Members = ({ states, onRemove }) => html`<ul class="members">${states.map(({ node, kind, state, behind, unapplied }) => html`<li key=${node} data-test="member">
  <${State} kind=${kind}>${node} ${state}<//>${behind > 0 && html` <span class="muted">${count(behind, "entry", "entries")} behind</span>`}
  ${unapplied > 0 && html` <span class="muted">${bytes(unapplied)} not applied</span>`}
  ${onRemove && html` <button type="button" class="quiet" aria-label=${`Remove the replica on ${node}`} onClick=${() => onRemove(node)} data-test="remove-member">Remove\u2026</button>`}</li>`)}</ul>`;

/** The leader of a vhost in a cell, with a link to it for who may see nodes. */
export const Leader = ({ leader }) => (leader
  ? isMonitor() ? html`<a href=${href("nodes", leader)} data-test="leader">${leader}</a>` : html`<span data-test="leader">${leader}</span>`
  : html`<span data-test="leader"><${State} kind="danger">none<//></span>`);

const MEMBERS_MAX = 100;

/** The leader of a vhost with its members; `placement` is its name, leader and members. With `onDone`, administrators can transfer the lead, and add and remove members. */
export function MembersCard({ placement, onDone }) {
  const { name, leader, members } = placement;
  const asks = isMonitor();
  const { data: nodes } = usePolled(asks ? withQuery(path("nodes"), { disable_stats: true }) : null);
  const { data: page } = usePolled(asks ? withQuery(path("replicas"), { page: 1, page_size: MEMBERS_MAX, name: exactly(name), use_regex: true }) : null);
  const replicas = page?.items.filter((one) => one.vhost === name && !isOfMetadata(one));
  const running = nodes && runningOf(nodes);
  const quorum = running && replicas && quorumOf(placement, replicas, running);
  const leading = replicas?.find(({ node, state }) => node === leader && state === "leader");
  const states = quorum && members.map((node) => memberOf(node, replicas.find((one) => one.node === node), leading, running.has(node), quorum.voters.includes(node)));
  const [kind, words] = quorum ? majorityState(quorum) : [];
  const others = running ? members.filter((node) => node !== leader && running.has(node)) : [];
  const free = running ? [...running].filter((node) => !members.includes(node)) : [];
  const mayChange = onDone && leader && isAdministrator();
  const actions = mayChange && html`
    ${others.length > 0 && html`<button type="button" onClick=${() => transfer(name, others, onDone)} data-test="transfer">Transfer\u2026</button>`}
    ${free.length > 0 && html`<button type="button" onClick=${() => addMember(name, free, onDone)} data-test="add-member">Add a replica\u2026</button>`}`;
  const remove = mayChange && members.length > 1 ? (node) => removeMember(placement, node, onDone) : undefined;
  return html`<${Card} title="Leader and members" test="vhost-members" actions=${actions}><${Facts} items=${[
    ["Leader", html`<${Leader} leader=${leader} />`],
    ["Majority", words && html`<${State} kind=${kind}>${words}<//>`],
    ["Members", states ? html`<${Members} states=${states} onRemove=${remove} />` : members.join(", ")],
  ]} /><//>`;
}
