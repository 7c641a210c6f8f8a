// The nodes of the cluster, those that cannot be reached included; without a cluster the one node.

import { get, path, withQuery } from "../api.js";
import { isInCluster } from "../cluster.js";
import { Meter, State } from "../components.js";
import { DASH, bytes, compact, duration, number } from "../format.js";
import { html, useEffect, useMemo, useState } from "../html.js";
import { usePolled } from "../poll.js";
import { href } from "../router.js";
import { isAdministrator } from "../session.js";
import { useStore } from "../store.js";
import { ListTable } from "../table.js";
import { actionsColumn } from "./columns.js";
import { exactly } from "./consequences.js";
import { DrainButton } from "./leads.js";
import { ForgetButton } from "./membership.js";

/** The alarms that are on, in words. */
const alarmsOf = (node) => [
  node.mem_alarm && "memory use is above the high watermark",
  node.disk_free_alarm && "free disk space is below the limit",
].filter(Boolean);

/** The state of a node, `[colour, word]`. */
export const nodeState = (node) => {
  if (node.running === false) return ["danger", "unreachable"];
  if (alarmsOf(node).length > 0) return ["danger", "alarm"];
  return node.being_drained ? ["warning", "drained"] : ["good", "running"];
};

const NAME = { key: "name", title: "Node", sort: "name", render: (node) => html`${alarmsOf(node).length > 0 && html`<span class="state danger" aria-hidden="true"></span>`}<a href=${href("nodes", node.name)}>${node.name}</a>` };
const STATE = { key: "state", title: "State", phone: 1, width: "5rem", render: (node) => html`<span title=${node.link_problem}><${State} kind=${nodeState(node)[0]}>${nodeState(node)[1]}<//></span>` };
const OWN = [
  { key: "memory", title: "Memory", phone: 2, width: "11rem", sort: "mem_used", render: (node) => (node.mem_used === undefined ? DASH : html`<${Meter} label="Memory" used=${node.mem_used} total=${node.mem_limit} isBad=${node.mem_alarm} text=${node.mem_limit ? `${bytes(node.mem_used)} of ${bytes(node.mem_limit)}` : bytes(node.mem_used)} />`) },
  { key: "disk", title: "Disk free", phone: 3, width: "8rem", sort: "disk_free", render: (node) => (node.disk_free === undefined ? DASH : html`<span title="Free space, and the limit of the disk alarm">${bytes(node.disk_free)}, limit ${bytes(node.disk_free_limit)}</span>`) },
];
const DESCRIPTORS = { key: "fds", title: "File descriptors", phone: 4, width: "9rem", sort: "fd_used", render: (node) => (node.fd_used === undefined ? DASH : html`<${Meter} label="File descriptors" used=${node.fd_used} total=${node.fd_total} text=${compact(node.fd_used)} />`) };
const UPTIME = { key: "uptime", title: "Uptime", phone: 5, width: "4rem", sort: "uptime", align: "right", render: (node) => duration(node.uptime) };
const DURABILITY = { key: "durability", title: "Confirms wait for", width: "5rem", render: (node) => ({ fsync: "the disk", os: "the system" })[node.durability] ?? "" };

/** A round-trip time in microseconds. */
export const roundTrip = (us) => (typeof us === "number" ? duration(us / 1000) : DASH);

/** By how much the clock of another node is ahead, with a sign. */
export const skew = (ms) => (typeof ms !== "number" ? DASH : ms > 0 ? `+${duration(ms)}` : duration(ms));

/** Milliseconds between two clocks that a finding reports. */
const SKEW_MS = 500;

const shownSkew = (ms) => (Math.abs(ms ?? 0) > SKEW_MS ? html`<span title="Set the clocks of all nodes by NTP"><${State} kind="warning">${skew(ms)}<//></span>` : skew(ms));

const LEADS = { key: "leads", title: "Leads", phone: 2, width: "5rem", align: "right", sort: "leads", hint: "Virtual hosts that the node leads", render: (node) => html`<a href=${href("replicas")}>${number(node.leads)}</a>` };
const LINKED = [
  { key: "rtt", title: "Round trip", width: "5rem", align: "right", sort: (node) => node.link?.rtt_us, hint: "From the node that answers to this one and back", render: (node) => (node.isAnswering ? html`<span class="muted" title="The node that answers this page">this node</span>` : roundTrip(node.link?.rtt_us)) },
  { key: "skew", title: "Clock ahead", width: "5rem", align: "right", sort: (node) => node.link?.clock_skew_ms, hint: "By how much the clock of the node is ahead of that of the node that answers", render: (node) => (node.isAnswering ? "" : shownSkew(node.link?.clock_skew_ms)) },
];

/** The node that answers, which tells more of itself than of others. */
const isAnswering = (node) => node.db_dir !== undefined;

/** What other nodes tell of themselves only, by their names: whether they are drained, their links and their clients. */
function useTold({ data: nodes, at }) {
  const [told, setTold] = useState({});
  useEffect(() => {
    const others = (nodes ?? []).filter((node) => node.running && !isAnswering(node));
    if (others.length === 0) return undefined;
    const abort = new AbortController();
    const ask = ({ name }) => get(path("nodes", name), { columns: "name,being_drained,cluster_links,sockets_used,relayed_connections" }, { signal: abort.signal });
    Promise.allSettled(others.map(ask)).then((answers) => {
      if (abort.signal.aborted) return;
      setTold(Object.fromEntries(answers.filter(({ status }) => status === "fulfilled").map(({ value }) => [value.name, value])));
    });
    return () => abort.abort();
  }, [at]);
  return told;
}

const PLACEMENT = { columns: "name,leader,members", disable_stats: true };

/** The vhosts with their leaders and members; nothing without a cluster. */
export const usePlacements = (isClustered) => usePolled(isClustered ? withQuery(path("vhosts"), PLACEMENT) : null);

/** The leader and the members of a vhost; nothing without a cluster. */
export function usePlacement(vhost) {
  const one = { ...PLACEMENT, page: 1, page_size: 1, name: exactly(vhost), use_regex: true };
  return usePolled(useStore(isInCluster) ? withQuery(path("vhosts"), one) : null).data?.items[0];
}

/**
 * The nodes as `rows`, the vhosts as `placements`, and `refresh` for everything about them. Those of a cluster have `isAnswering`, `runningOthers`, `leads` (a
 * number) and `link`, the link of the node that answers with them.
 */
export function useClusterNodes(polled) {
  const told = useTold(polled);
  const nodes = polled.data ?? [];
  const placements = usePlacements(nodes.length > 1);
  const vhosts = placements.data;
  const rows = useMemo(() => {
    if (nodes.length < 2) return polled.data;
    const links = nodes.find(isAnswering)?.cluster_links ?? [];
    const running = nodes.filter((node) => node.running).length;
    return nodes.map((node) => ({
      ...node,
      ...(node.running ? told[node.name] : {}),
      isAnswering: isAnswering(node),
      runningOthers: node.running ? running - 1 : running,
      leads: vhosts?.filter(({ leader }) => leader === node.name).length,
      link: links.find(({ name }) => name === node.name),
    }));
  }, [polled.data, told, vhosts]);
  const refresh = () => [polled, placements].forEach((one) => one.refresh());
  return { rows, placements, refresh };
}

/** All nodes, of `useClusterNodes`; those of a cluster with their part in it. */
export function NodesTable({ id, polled, nodes: { rows, refresh } }) {
  const isClustered = rows?.length > 1;
  const isOffered = isClustered && isAdministrator();
  const columns = useMemo(() => {
    if (!isClustered) return [NAME, STATE, ...OWN, DESCRIPTORS, UPTIME, DURABILITY];
    const actions = actionsColumn((node) => html`<${DrainButton} node=${node} onDone=${refresh} isQuiet=${true} /><${ForgetButton} node=${node} onDone=${refresh} isQuiet=${true} />`);
    return [NAME, STATE, LEADS, ...OWN, { ...DESCRIPTORS, isOptional: true }, UPTIME, ...LINKED, ...(isOffered ? [actions] : [])];
  }, [isClustered, isOffered]);
  return html`<${ListTable} id=${id} polled=${polled} rows=${rows} columns=${columns} rowKey=${(node) => node.name} noun="node" />`;
}

const LINKS = [
  { key: "from", title: "From", sort: "from", render: (link) => link.from },
  { key: "to", title: "To", sort: "name", width: "9rem", render: (link) => link.name },
  { key: "rtt", title: "Round trip", sort: "rtt_us", width: "6rem", align: "right", render: (link) => roundTrip(link.rtt_us) },
  { key: "skew", title: "Clock ahead", sort: "clock_skew_ms", width: "6rem", align: "right", hint: "By how much the clock of the other node is ahead", render: (link) => skew(link.clock_skew_ms) },
  { key: "sent", title: "Sent", sort: "send_bytes", width: "6rem", align: "right", render: (link) => bytes(link.send_bytes) },
  { key: "received", title: "Received", sort: "recv_bytes", width: "6rem", align: "right", render: (link) => bytes(link.recv_bytes) },
  { key: "address", title: "Address", width: "9rem", render: (link) => `${link.peer_addr}:${link.peer_port}` },
];

/** The open links of some nodes, as each of them tells them. */
export function LinksTable({ nodes }) {
  const rows = nodes.flatMap((node) => (node.cluster_links ?? []).map((link) => ({ ...link, from: node.name })));
  return html`<${ListTable} id="links" rows=${rows} columns=${LINKS} rowKey=${(link) => `${link.from}\n${link.name}`} noun="link" empty="No link is open." />`;
}
