// Rates of messages into and out of a queue: lines of charts.

import { rateLine } from "../chart.js";
import { number } from "../format.js";
import { REASONS } from "./deaths.js";
import { DEAD_LETTERED, DROPPED, LOST, REFUSED } from "./ends.js";

/** In and out, for any reason. */
export function flowLines(stats = {}) {
  const line = (label, key) => rateLine(label, stats[`${key}_details`], `${number(stats[key] ?? 0)} in total`);
  return [
    line("Incoming", "publish"),
    line(REFUSED, "refused"),
    line("Delivered", "deliver_get"),
    line("Acknowledged", "ack"),
    line("Expired", "expired"),
    line(DEAD_LETTERED, "dead_lettered"),
    line(DROPPED, "dropped_without_dlx"),
    line(LOST, "dead_letters_lost"),
  ];
}

/** Deliveries by their way and by their acknowledgement. */
export function deliveryLines(stats = {}) {
  const line = (label, key, hint) => rateLine(label, stats[`${key}_details`], hint);
  return [
    line("Deliver (manual ack)", "deliver", "Delivered to consumers that acknowledge"),
    line("Deliver (auto ack)", "deliver_no_ack", "Delivered to consumers in automatic acknowledgement mode"),
    line("Get (manual ack)", "get", "Fetched with basic.get, to be acknowledged"),
    line("Get (auto ack)", "get_no_ack", "Fetched with basic.get without acknowledgement"),
    line("Get (empty)", "get_empty", "basic.get on an empty queue"),
    line("Redelivered", "redeliver", "Delivered again; counted above, too"),
  ];
}

/** Deaths by what became of the message and by reason, and redriven messages: those that have happened. */
export function deathLines(stats = {}) {
  const of = (key, label) => Object.entries(REASONS)
    .map(([reason, words]) => [`${key}_${reason}`, `${label}: ${words}`])
    .filter(([name]) => (stats[name] ?? 0) > 0)
    .map(([name, title]) => rateLine(title, stats[`${name}_details`], `${number(stats[name])} in total`));
  const lost = [["dead_letters_lost", LOST], ["dead_letter_copies_dropped", "Dead-letter copies dropped"], ["redriven", "Redriven"]]
    .filter(([name]) => (stats[name] ?? 0) > 0)
    .map(([name, title]) => rateLine(title, stats[`${name}_details`], `${number(stats[name])} in total`));
  return [...of("dead_lettered", "Dead letter"), ...of("dropped", "Dropped"), ...lost];
}
