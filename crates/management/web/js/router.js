// From the address to a page. A page is a module that is loaded when it is first looked at.

import { store } from "./store.js";

/**
 * Every page: its address, its module, which part of the navigation it belongs to.
 * `:name` stands for one segment, `:name?` at the end for one that may be missing and that does not make
 * another page (a tab). The module's default export is a component that gets `{ params }`.
 */
export const ROUTES = [
  ["", () => import("./pages/overview.js"), "overview"],
  ["connections", () => import("./pages/connections.js"), "connections"],
  ["connections/:name", () => import("./pages/connection.js"), "connections"],
  ["channels", () => import("./pages/channels.js"), "channels"],
  ["channels/:name", () => import("./pages/channel.js"), "channels"],
  ["exchanges", () => import("./pages/exchanges.js"), "exchanges"],
  ["exchanges/:vhost/:name", () => import("./pages/exchange.js"), "exchanges"],
  ["queues", () => import("./pages/queues.js"), "queues"],
  ["queues/:vhost/:name/:tab?", () => import("./pages/queue/index.js"), "queues"],
  ["dead-letters", () => import("./pages/dead-letters/map.js"), "dead-letters"],
  ["dead-letters/queues", () => import("./pages/dead-letters/queues.js"), "dead-letter-queues"],
  ["redrives", () => import("./pages/redrives/list.js"), "redrives"],
  ["redrives/:id", () => import("./pages/redrives/one.js"), "redrives"],
  ["nodes", () => import("./pages/nodes.js"), "nodes"],
  ["nodes/:name", () => import("./pages/node.js"), "nodes"],
  ["health", () => import("./pages/health.js"), "health"],
  ["admin/users", () => import("./pages/admin/users.js"), "users"],
  ["admin/users/:name", () => import("./pages/admin/user.js"), "users"],
  ["admin/vhosts", () => import("./pages/admin/vhosts.js"), "vhosts"],
  ["admin/vhosts/:name", () => import("./pages/admin/vhost.js"), "vhosts"],
  ["admin/policies", () => import("./pages/admin/policies.js"), "policies"],
  ["admin/policies/new", () => import("./pages/admin/policy.js"), "policies"],
  ["admin/policies/:kind/:vhost/:name", () => import("./pages/admin/policy.js"), "policies"],
  ["admin/limits", () => import("./pages/admin/limits.js"), "limits"],
  ["admin/definitions", () => import("./pages/admin/definitions.js"), "definitions"],
  ["admin/parameters", () => import("./pages/admin/parameters.js"), "parameters"],
  ["admin/features", () => import("./pages/admin/features.js"), "features"],
  ["admin/logins", () => import("./pages/admin/logins.js"), "logins"],
];

/** The address of a page: `href("queues", "/", "orders", "messages")`. Names are encoded. */
export const href = (...names) => `#/${names.map(encodeURIComponent).join("/")}`;

/** The same with a query: `hrefWith({ name: "dead" }, "queues")`. */
export const hrefWith = (query, ...names) => `${href(...names)}?${new URLSearchParams(query)}`;

/** Where the page is: `{ key, params, query, load, section }`; without `load` there is no such page. */
export const place = store(read());

/** Goes to an address made by `href`. */
export function go(address, { replace = false } = {}) {
  if (replace) {
    history.replaceState(null, "", address);
    place.set(read());
  } else {
    location.hash = address;
  }
}

/** Changes parts of the query, without an entry in the history. Null and empty take a part away. */
export function setQuery(changes) {
  const query = new URLSearchParams(place.get().query);
  for (const [name, value] of Object.entries(changes)) {
    if ((value ?? "") === "" || value === false) query.delete(name);
    else query.set(name, value);
  }
  const [names] = location.hash.split("?");
  const text = query.toString();
  go(`${names || "#/"}${text ? `?${text}` : ""}`, { replace: true });
}

/** Follows the address from now on. */
export function follow() {
  window.addEventListener("hashchange", () => place.set(read()));
}

function read() {
  const [names, query = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const segments = names.split("/").filter((name) => name !== "").map(decode);
  const found = { query: new URLSearchParams(query), params: {}, load: null, section: "", key: location.hash };
  for (const [pattern, load, section] of ROUTES) {
    const params = match(pattern === "" ? [] : pattern.split("/"), segments);
    if (params) {
      const fixed = pattern.split("/").filter((part) => !part.endsWith("?"));
      const key = fixed.map((part) => (part.startsWith(":") ? encodeURIComponent(params[part.slice(1)]) : part));
      return { ...found, key: key.join("/"), params, load, section };
    }
  }
  return found;
}

function match(parts, segments) {
  if (segments.length > parts.length) return null;
  const params = {};
  for (const [index, part] of parts.entries()) {
    const segment = segments[index];
    if (segment === undefined && !part.endsWith("?")) return null;
    if (part.startsWith(":")) params[part.replace(/[:?]/g, "")] = segment;
    else if (part !== segment) return null;
  }
  return params;
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
