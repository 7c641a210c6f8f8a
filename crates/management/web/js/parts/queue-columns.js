// Columns of the list of queues that are hidden until chosen: amounts, rates of deliveries, losses.

import { bytesColumn, numberColumn, percentColumn, rateColumn } from "./columns.js";

const optional = (rest) => ({ isOptional: true, ...rest });

const AMOUNTS = [
  percentColumn("capacity", "Capacity", "consumer_capacity", optional({ name: "Consumer capacity", hint: "Share of time in which a consumer could take a message" })),
  numberColumn("delayed", "Delayed", "messages_delayed", optional({ hint: "Returned messages that wait to be ready again" })),
  numberColumn("persistent", "Persistent", "messages_persistent", optional({ width: "6rem", hint: "Messages that survive a restart" })),
  numberColumn("in_memory", "In memory", "messages_ram", optional({ width: "6.2rem", hint: "Messages held in memory" })),
  bytesColumn("bytes_ready", "Bytes ready", "message_bytes_ready", optional()),
  bytesColumn("bytes_unacked", "Bytes unacked", "message_bytes_unacknowledged", optional({ width: "7.6rem" })),
  bytesColumn("bytes_persistent", "Bytes persistent", "message_bytes_persistent", optional({ width: "8.4rem" })),
  bytesColumn("bytes_in_memory", "Bytes in memory", "message_bytes_ram", optional({ width: "8.4rem" })),
];

const RATES = [
  rateColumn("deliver_manual", "Deliver (manual ack)", "message_stats.deliver", optional({ width: "9rem" })),
  rateColumn("deliver_auto", "Deliver (auto ack)", "message_stats.deliver_no_ack", optional({ width: "9rem" })),
  rateColumn("get_manual", "Get (manual ack)", "message_stats.get", optional({ width: "8.4rem" })),
  rateColumn("get_auto", "Get (auto ack)", "message_stats.get_no_ack", optional({ width: "8rem" })),
  rateColumn("get_empty", "Get (empty)", "message_stats.get_empty", optional({ width: "6.6rem" })),
  rateColumn("dropped_without_dlx", "Dropped (no DLX)", "message_stats.dropped_without_dlx", optional({ width: "8.4rem", hint: "Messages per second that died in a queue without a dead-letter exchange" })),
  rateColumn("lost", "Lost", "message_stats.dead_letters_lost", optional({ name: "Dead letters lost", hint: "Dead letters per second that no queue accepted" })),
];

/** The columns. */
export const DETAIL_COLUMNS = [...AMOUNTS, ...RATES];

/** Fields of the API for these columns. */
export const DETAIL_FIELDS = [
  ...AMOUNTS.map((column) => column.sort),
  ...RATES.map((column) => column.sort),
];
