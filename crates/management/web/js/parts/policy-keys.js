// The settings that policies give, and how their values look.

import { bytes, duration, plain } from "../format.js";
import { html } from "../html.js";
import { SETTINGS } from "./settings-table.js";

const KEYS = SETTINGS.filter(({ key }) => key);
const NO_EFFECT = "Without effect";

/** Policy keys with an effect, by the title of their group. */
export const GROUPS = [...new Set(KEYS.map(({ group }) => group))].filter((group) => group !== NO_EFFECT)
  .map((group) => [group, KEYS.filter((one) => one.group === group)]);

/** Keys that are accepted and do nothing here. */
export const WITHOUT_EFFECT = KEYS.filter(({ group }) => group === NO_EFFECT);

const ALL = new Map(KEYS.map((one) => [one.key, one]));

/** What is known of a key; nothing of those that are not. */
export const settingOf = (key) => ALL.get(key);

/** A number with its unit in words: 60000 ms are 1 min. Nothing if that says no more. */
export function inWords(key, value) {
  const unit = ALL.get(key)?.unit;
  if (typeof value !== "number" || !unit) return "";
  if (unit === "ms") return value < 1000 ? "" : duration(value);
  return value < 1024 ? "" : bytes(value);
}

/** The value of a setting. */
export function Value({ name, value }) {
  if (value === null || value === undefined) return html`<span class="muted">none</span>`;
  if (value === "") return html`<span class="muted">${name.endsWith("-exchange") ? "(default exchange)" : "(empty)"}</span>`;
  const unit = ALL.get(name)?.unit;
  const words = inWords(name, value);
  return html`<span class="setting-value">${plain(value)}${typeof value === "number" && unit ? ` ${unit}` : ""}${words && html` <small class="muted">${words}</small>`}</span>`;
}

/** A definition: its keys and values. */
export const Definition = ({ definition }) => html`<dl class="definition wrap">${Object.entries(definition).map(([key, value]) => html`
  <div key=${key}><dt>${key}</dt><dd><${Value} name=${key} value=${value} /></dd></div>`)}</dl>`;
