// Columns of the list of queues that are hidden until chosen: amounts, rates of deliveries, losses.

import { bytesColumn, numberColumn, percentColumn, rateColumn } from "./columns.js";

const optional = (rest) => ({ isOptional: true, ...rest });

const AMOUNTS = [
  percentColumn("capacity", "Capacity", "consumer_capacity", optional({ group: "Overview", name: "Consumer capacity", hint: "Share of time in which a consumer could take a message" })),
  numberColumn("delayed", "Delayed", "messages_delayed", optional({ group: "Messages", hint: "Messages that wait: returned ones, and those with a delivery time" })),
  numberColumn("persistent", "Persistent", "messages_persistent", optional({ group: "Messages", hint: "Messages that survive a restart" })),
  numberColumn("in_memory", "In memory", "messages_ram", optional({ group: "Messages", hint: "Messages held in memory" })),
  bytesColumn("bytes_ready", "Bytes ready", "message_bytes_ready", optional({ group: "Message bytes" })),
  bytesColumn("bytes_unacked", "Bytes unacked", "message_bytes_unacknowledged", optional({ group: "Message bytes" })),
  bytesColumn("bytes_persistent", "Bytes persistent", "message_bytes_persistent", optional({ group: "Message bytes" })),
  bytesColumn("bytes_in_memory", "Bytes in memory", "message_bytes_ram", optional({ group: "Message bytes" })),
];

const RATES = [
  rateColumn("deliver_manual", "Deliver (manual ack)", "message_stats.deliver", optional({ group: "Message rates" })),
  rateColumn("deliver_auto", "Deliver (auto ack)", "message_stats.deliver_no_ack", optional({ group: "Message rates" })),
  rateColumn("get_manual", "Get (manual ack)", "message_stats.get", optional({ group: "Message rates" })),
  rateColumn("get_auto", "Get (auto ack)", "message_stats.get_no_ack", optional({ group: "Message rates" })),
  rateColumn("get_empty", "Get (empty)", "message_stats.get_empty", optional({ group: "Message rates" })),
  rateColumn("dropped_without_dlx", "Dropped (no DLX)", "message_stats.dropped_without_dlx", optional({ group: "Deaths per second", hint: "Messages per second that died in a queue without a dead-letter exchange" })),
  rateColumn("lost", "Lost", "message_stats.dead_letters_lost", optional({ group: "Deaths per second", name: "Dead letters lost", hint: "Dead letters per second that no queue accepted" })),
];

/** The columns. */
export const DETAIL_COLUMNS = [...AMOUNTS, ...RATES];

/** Fields of the API for these columns. */
export const DETAIL_FIELDS = [
  ...AMOUNTS.map((column) => column.sort),
  ...RATES.map((column) => column.sort),
];
