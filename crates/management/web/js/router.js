// From the address to a page.

import { store } from "./store.js";

/** Every page, as `routes.js` has them. */
let routes = [];

/** The address of a page: `href("queues", "/", "orders", "messages")`. Names are encoded. */
export const href = (...names) => `#/${names.map(encodeURIComponent).join("/")}`;

/** The same with a query: `hrefWith({ name: "dead" }, "queues")`. */
export const hrefWith = (query, ...names) => `${href(...names)}?${new URLSearchParams(query)}`;

/** Where the page is: `{ key, params, query, Shown, section, tag }`; without `Shown` there is no such page. */
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

/** Follows the address from now on, to these pages. */
export function follow(pages) {
  routes = pages;
  place.set(read());
  window.addEventListener("hashchange", () => place.set(read()));
}

function read() {
  const [names, query = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const segments = names.split("/").filter((name) => name !== "").map(decode);
  const found = { query: new URLSearchParams(query), params: {}, Shown: null, section: "", tag: undefined, key: location.hash };
  for (const [pattern, Shown, section, tag] of routes) {
    const params = match(pattern === "" ? [] : pattern.split("/"), segments);
    if (params) {
      const fixed = pattern.split("/").filter((part) => !part.endsWith("?"));
      const key = fixed.map((part) => (part.startsWith(":") ? encodeURIComponent(params[part.slice(1)]) : part));
      return { ...found, key: key.join("/"), params, Shown, section, tag };
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
