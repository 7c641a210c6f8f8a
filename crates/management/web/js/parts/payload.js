// The body of a message: as text, as indented JSON, or as bytes.

import { bytes, count } from "../format.js";
import { html, useMemo, useState } from "../html.js";

const ROW = 16;
const HEX_BYTES_MAX = 4096;
const NAMES = { json: "JSON", text: "Text", hex: "Hex" };

/** The bytes of a payload as the server sends it. */
export function octetsOf({ payload, payload_encoding: encoding }) {
  if (encoding !== "base64") return new TextEncoder().encode(payload);
  return Uint8Array.from(atob(payload), (character) => character.charCodeAt(0));
}

/** The lines of a hex dump: `{ at, hex, text }`. */
export function hexLines(octets, max = HEX_BYTES_MAX) {
  const lines = [];
  for (let at = 0; at < Math.min(octets.length, max); at += ROW) {
    const row = [...octets.subarray(at, Math.min(at + ROW, max))];
    const pairs = row.map((octet) => octet.toString(16).padStart(2, "0"));
    const half = (from) => pairs.slice(from, from + ROW / 2).join(" ");
    lines.push({
      at: at.toString(16).padStart(6, "0"),
      hex: `${half(0)}  ${half(ROW / 2)}`.padEnd(ROW * 3),
      text: row.map((octet) => (octet > 0x1f && octet < 0x7f ? String.fromCharCode(octet) : "\u00b7")).join(""),
    });
  }
  return lines;
}

/**
 * JSON on lines of its own, or null if it is none. Only spaces change: numbers keep all their digits, and names
 * that are there twice stay.
 */
export function indented(text) {
  try {
    if (typeof JSON.parse(text) !== "object") return null;
  } catch {
    return null;
  }
  // Valid JSON has nothing but these.
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g);
  let depth = 0;
  const line = () => `\n${"  ".repeat(depth)}`;
  return tokens.map((token, index) => {
    const isEmpty = /^[}\]]$/.test(tokens[index + 1]);
    switch (token) {
      case "{": case "[":
        depth += isEmpty ? 0 : 1;
        return isEmpty ? token : token + line();
      case "}": case "]":
        if (/^[{[]$/.test(tokens[index - 1])) return token;
        depth -= 1;
        return line() + token;
      case ",": return token + line();
      case ":": return ": ";
      default: return token;
    }
  }).join("");
}

/** A body with a choice of how it is shown. */
export function Payload({ message }) {
  const { payload, payload_encoding: encoding, payload_bytes: size } = message;
  const isText = encoding !== "base64";
  const json = useMemo(() => (isText ? indented(payload) : null), [payload, isText]);
  const octets = useMemo(() => octetsOf(message), [payload, encoding]);
  const kinds = [json !== null && "json", isText && "text", "hex"].filter(Boolean);
  const [chosen, setChosen] = useState(null);
  const kind = kinds.includes(chosen) ? chosen : kinds[0];
  const isCut = octets.length < size;
  if (size === 0) return html`<p class="muted">The body is empty.</p>`;
  return html`<div class="payload">
    <div class="segments" role="group" aria-label="Show the body as">${kinds.map((one) => html`
      <button type="button" key=${one} aria-pressed=${one === kind} onClick=${() => setChosen(one)} data-test=${`as-${one}`}>${NAMES[one]}</button>`)}
      <span class="muted">${bytes(size)}${message.properties?.content_type ? `, ${message.properties.content_type}` : ""}</span></div>
    ${kind === "hex" ? html`<${Hex} octets=${octets} />` : html`<pre class="body" tabindex="0" data-test="payload">${kind === "json" ? json : payload}</pre>`}
    ${isCut && html`<p class="muted">Shortened to the first ${bytes(octets.length)} of ${bytes(size)}.</p>`}
  </div>`;
}

function Hex({ octets }) {
  const lines = useMemo(() => hexLines(octets), [octets]);
  const left = octets.length - HEX_BYTES_MAX;
  return html`<pre class="body hex" tabindex="0" data-test="payload">${lines.map((line) => html`<span key=${line.at}><i>${line.at}</i>  ${line.hex}  <b>${line.text}</b>${"\n"}</span>`)}</pre>
    ${left > 0 && html`<p class="muted">${count(left, "more byte")}.</p>`}`;
}
