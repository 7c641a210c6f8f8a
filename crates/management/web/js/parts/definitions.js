// Definitions: export to a file and import from a file, of the whole broker or of one vhost.

import { request } from "../api.js";
import { brokerNow } from "../clock.js";
import { Card } from "../components.js";
import { attempt } from "../errors.js";
import { bytes, count } from "../format.js";
import { ActionForm, Field, TextField, useForm } from "../forms.js";
import { html, useState } from "../html.js";
import { FAMILIES, importAsked, pathOf } from "./import-preview.js";

/** Gives the browser a file to save. */
function save(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = document.createElement("a");
  Object.assign(link, { href: url, download: name });
  link.click();
  // The browser has it when it has asked where to.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** A name that sorts by time and tells where it is from. */
function fileName(vhost) {
  const of = (vhost ?? location.hostname).replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^-+|-+$/g, "") || "default";
  return `leveret-${of}-${new Date(brokerNow()).toISOString().slice(0, 10)}.json`;
}

function Export({ vhost }) {
  const form = useForm({ name: fileName(vhost) });
  // As it came, because numbers may be larger than a page can hold.
  const run = async () => save(form.values.name, await request("GET", pathOf(vhost), undefined, { isText: true }));
  return html`<${Card} title="Export" test="export">
    <p class="muted">${vhost === undefined ? "Users (with password hashes), vhosts, permissions, policies, exchanges, queues and bindings. Messages are not exported."
      : "Policies, exchanges, queues and bindings of this vhost, without users and messages. They can be imported into any vhost."}</p>
    <${ActionForm} onSubmit=${run} action="Download" test="export-form">
      <${TextField} label="File" ...${form.bind("name")} isWide=${true} required data-test="export-name" /><//><//>`;
}

/** What is in a file, in words; null if it cannot be read. */
function contents(text) {
  try {
    const parsed = JSON.parse(text);
    return FAMILIES.filter(([family]) => parsed[family]?.length > 0)
      .map(([family, one, many]) => count(parsed[family].length, one, many));
  } catch {
    return null;
  }
}

function Import({ vhost, onDone }) {
  const [file, setFile] = useState(null);
  const choose = async (event) => {
    const [chosen] = event.target.files;
    setFile(null);
    if (chosen) await attempt("The file cannot be read", async () => setFile({ name: chosen.name, size: chosen.size, text: await chosen.text() }));
  };
  // The same file, mended, is a choice of its own.
  const forget = (event) => {
    event.target.value = "";
  };
  const run = async () => {
    if (!file) throw new Error("Choose a file.");
    if (await importAsked({ vhost, file })) onDone?.();
  };
  const told = file && contents(file.text);
  return html`<${Card} title="Import" test="import">
    <p class="muted">The import is all or nothing: one error, and nothing changes. Nothing is deleted. Existing queues and exchanges stay as they are; everything else with the same name is replaced. A preview shows what is new, replaced and kept.</p>
    <${ActionForm} onSubmit=${run} action="Import\u2026" test="import-form">
      <${Field} label="File" isWide=${true}><input type="file" accept=".json,application/json" onClick=${forget} onChange=${choose} data-test="import-file" /><//>
      ${file && html`<p class=${told ? "is-wide" : "is-wide form-error"} data-test="import-contents">${file.name}, ${bytes(file.size)}: ${told
        ? told.join(", ") || "no known definitions" : "not valid JSON"}</p>`}
    <//><//>`;
}

/** Both, side by side: of one vhost, or of everything. */
export const ExportImport = ({ vhost, onDone }) => html`<div class="cards"><${Export} key=${vhost} vhost=${vhost} /><${Import} key=${`in ${vhost}`} vhost=${vhost} onDone=${onDone} /></div>`;
