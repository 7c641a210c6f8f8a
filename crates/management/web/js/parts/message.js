// A message got by hand: body and properties.

import { Facts, Values } from "../components.js";
import { bytes } from "../format.js";
import { html } from "../html.js";
import { indented } from "./payload.js";

/** The body of a message that came over the API. */
export function Body({ message }) {
  const { payload, payload_encoding: encoding, payload_bytes: size } = message;
  const isCut = encoding === "string" && new TextEncoder().encode(payload).length < size;
  return html`<div class="body-box">
    <p class="muted">${bytes(size)}${encoding === "base64" ? ", binary, in base64" : ""}${isCut ? ", shortened" : ""}</p>
    <pre data-test="payload">${encoding === "string" && !isCut ? indented(payload) ?? payload : payload}</pre></div>`;
}

/** The properties of a message without its headers, and the headers. */
export function Properties({ message }) {
  const { headers, ...rest } = message.properties ?? {};
  return html`<${Facts} items=${Object.entries(rest).map(([name, value]) => [name, String(value)])} />
    ${headers && html`<h3>Headers</h3><${Values} table=${headers} />`}`;
}
