// Rates of messages into and out of a queue: lines of charts.

import { rateLine } from "../chart.js";
import { number } from "../format.js";
import { REASONS } from "./deaths.js";

/** In and out, for any reason. */
export function flowLines(stats = {}) {
  const line = (label, key) => rateLine(label, stats[`${key}_details`], `${number(stats[key] ?? 0)} in total`);
  return [
    line("Published", "publish"),
    line("Delivered", "deliver_get"),
    line("Acknowledged", "ack"),
    line("Expired", "expired"),
    line("Dead-lettered", "dead_lettered"),
    line("Dropped", "dropped"),
  ];
}

/** Deaths by what became of the message and by reason: those that have happened. */
export function deathLines(stats = {}) {
  const of = (key, label) => Object.entries(REASONS)
    .map(([reason, words]) => [`${key}_${reason}`, `${label}: ${words}`])
    .filter(([name]) => (stats[name] ?? 0) > 0)
    .map(([name, title]) => rateLine(title, stats[`${name}_details`], `${number(stats[name])} in total`));
  return [...of("dead_lettered", "Dead letter"), ...of("dropped", "Dropped")];
}
