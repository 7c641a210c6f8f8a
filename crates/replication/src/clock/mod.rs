//! The time of a group across nodes whose clocks disagree.
//!
//! A group has an *axis*: a time that no leader lets run ahead of its predecessor's. A leader's axis is its
//! monotonic clock plus an offset. Its successor knows a lower bound of the difference between the two clocks,
//! and continues from there: never early, late by about the delay of the fastest message.

mod axis;
mod bounds;

#[cfg(test)]
mod tests;

pub use axis::{Axis, AxisOrigin, KnownClocks, LeaderClock, NewAxis, TurnClock};
pub use bounds::{ClockBounds, ClockReading};
