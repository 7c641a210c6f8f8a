// What has happened to a message, in words: told from its deaths and redrives.

import { duration, moment, number } from "../format.js";
import { code, queue, toExchange } from "./words.js";

/** A header that says what a message had been through before it was redriven. */
const REDRIVES = "x-redrives";

const DIED = {
  expired: (name) => ["expired in queue ", queue(name)],
  rejected: (name) => ["was rejected by a consumer of queue ", queue(name)],
  maxlen: (name) => ["exceeded the length limit of queue ", queue(name)],
  delivery_limit: (name) => ["exceeded the delivery limit of queue ", queue(name)],
};

/** The reasons of deaths in words. */
export const REASONS = {
  expired: "expired",
  rejected: "rejected",
  maxlen: "maxlen exceeded",
  delivery_limit: "delivery limit exceeded",
};

/**
 * What happened to a message of a queue, oldest first, as `{ at, kind, parts }`: `at` in milliseconds, null
 * where it is unknown; `kind` is publish, death, sent, redrive, wait or end; `parts` is a sentence.
 */
export function story(message, inQueue) {
  const steps = [];
  const eras = [...lives(message), { deaths: [...(message.deaths ?? [])].reverse(), redrive: null }];
  eras.forEach(({ deaths, redrive }, index) => {
    const [first] = deaths;
    const start = first
      ? toExchange(first.exchange, first.routing_keys)
      : redrive ? null : toExchange(message.exchange, [message.routing_key]);
    const before = eras[index - 1]?.redrive;
    if (before) steps.push(sentBack(before, start));
    else if (start) steps.push(published(message, start, first === undefined && index === 0));
    steps.push(...died(deaths, redrive === null ? message : redrive));
    if (redrive && deaths.length === 0 && index === 0) steps.push({ at: null, kind: "publish", parts: ["published, and routed to queue ", queue(redrive.queue)] });
  });
  return [...steps, ...rest(message, inQueue)];
}

/** The lives before the last redrive, oldest first: deaths oldest first, and the redrive that ended them. */
function lives(message) {
  const told = message.properties?.headers?.[REDRIVES];
  return (message.redrives ?? []).map((redrive, index) => {
    const old = Array.isArray(told) ? told[index]?.["x-death"] : null;
    return { deaths: Array.isArray(old) ? old.map(fromHeader).reverse() : [], redrive };
  }).reverse();
}

/** An entry of an `x-death` header, in the form of `deaths`. */
function fromHeader(entry) {
  const expiration = Number(entry["original-expiration"]);
  return {
    queue: entry.queue ?? "",
    reason: entry.reason ?? "",
    count: entry.count ?? 1,
    time_ms: typeof entry.time === "number" ? entry.time * 1000 : null,
    exchange: entry.exchange ?? "",
    routing_keys: entry["routing-keys"] ?? [],
    original_expiration_ms: Number.isFinite(expiration) ? expiration : null,
  };
}

function published(message, start, isHere) {
  const { timestamp } = message.properties ?? {};
  const told = typeof timestamp === "number" ? [` (its timestamp says ${moment(timestamp * 1000)})`] : [];
  return { at: isHere ? message.arrived_ms : null, kind: "publish", parts: ["published to ", ...start, ...told] };
}

function sentBack({ queue: from, user, time_ms: at }, start) {
  const by = user ? [" by user ", code(user)] : [];
  const as = start ? [", as published to ", ...start] : [];
  return { at: at ?? null, kind: "redrive", parts: ["redriven from queue ", queue(from), ...by, ...as] };
}

/** Deaths of one life, each with where the message went then; `last` says where after the last one. */
function died(deaths, last) {
  return deaths.flatMap((death, index) => {
    const before = deaths[index - 1];
    const next = deaths[index + 1];
    const isOnce = death.count === 1;
    const waited = before && before.count === 1 && isOnce && death.time_ms > before.time_ms
      ? [` after ${duration(death.time_ms - before.time_ms)}`] : [];
    const own = death.reason === "expired" && death.original_expiration_ms !== null
      ? [` (its own expiration was ${duration(death.original_expiration_ms)})`] : [];
    const often = isOnce ? [] : [` for the first time; ${number(death.count)} times in total`];
    const words = DIED[death.reason]?.(death.queue) ?? [`left (${death.reason}) queue `, queue(death.queue)];
    const step = { at: death.time_ms, kind: "death", reason: death.reason, parts: [...words, ...waited, ...own, ...often] };
    const to = next ? toExchange(next.exchange, next.routing_keys) : sentTo(last);
    return to ? [step, { at: isOnce ? death.time_ms : null, kind: "sent", parts: ["sent to ", ...to] }] : [step];
  });
}

/** Where a message went after its last death: a redriven one says nothing about it. */
const sentTo = ({ exchange, routing_key: key }) => (exchange === undefined ? null : toExchange(exchange, [key]));

function rest(message, inQueue) {
  const at = message.arrived_ms;
  const here = ["in queue ", queue(inQueue)];
  const holder = message.consumer_tag
    ? [" by consumer ", code(message.consumer_tag)]
    : message.channel ? [" on channel ", code(String(message.channel))] : [];
  const steps = {
    unacknowledged: { at, kind: "wait", parts: [...here, " since then; unacknowledged", ...holder] },
    delayed: { at, kind: "wait", parts: [...here, " since then; returned, and waits to be ready again"] },
    dead: { at, kind: "wait", parts: ["died ", ...here, ", which keeps it until another queue has it"] },
  };
  const wait = steps[message.state] ?? { at, kind: "wait", parts: ["waits ", ...here, " since then"] };
  return message.expires_ms === null || message.expires_ms === undefined
    ? [wait] : [wait, { at: message.expires_ms, kind: "end", parts: ["expires"] }];
}
