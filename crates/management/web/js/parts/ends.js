// The ways in which a message ends without a consumer: labels that say where each leads, for tiles, charts and columns.

export const REFUSED = "Refused (queue full)";
export const DEAD_LETTERED = "Dead-lettered (moved)";
export const DROPPED = "Dropped (no DLX)";
export const LOST = "Lost (no target queue)";
