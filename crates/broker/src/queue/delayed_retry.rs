//! Delayed retry: the wait of a returned message before it is delivered again. See `docs/guides/retry-with-delays.md`.

use std::fmt;

use super::resolved_keys::ResolvedKeys;
use crate::entry::Entry;
use crate::ids::QueueNumber;
use crate::setting::{DelayedRetryType, DeliveryCount, PolicyKey, Ratio, RetrySchedule};

/// Delayed retry of a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DelayedRetry {
    /// The returned messages that are delayed.
    pub kind: DelayedRetryType,
    /// The delay of each return.
    pub delays: RetryDelays,
    /// The part of a delay by which it varies from message to message, 0 to 1; none if it does not.
    pub jitter: Option<Ratio>,
    /// The deliveries that make the delay longer.
    pub count: DeliveryCount,
}

/// The delays of a message, return by return.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RetryDelays {
    /// `min_ms` times the number of deliveries, at most `max_ms`: the rule of RabbitMQ.
    Linear {
        /// The first delay, in milliseconds.
        min_ms: u64,
        /// The longest delay, in milliseconds.
        max_ms: u64,
    },
    /// Each delay is `multiplier` times the one before.
    Exponential {
        /// The first delay, in milliseconds.
        min_ms: u64,
        /// The longest delay, in milliseconds.
        max_ms: u64,
        /// The growth, 1 or more.
        multiplier: Ratio,
    },
    /// Each delay by itself.
    Schedule(RetrySchedule),
}

impl DelayedRetry {
    pub(super) fn of(keys: &ResolvedKeys) -> Option<Self> {
        let kind = keys.get(PolicyKey::DelayedRetryType).word()?;
        let delays = match keys.get(PolicyKey::DelayedRetrySchedule).schedule() {
            Some(schedule) => RetryDelays::Schedule(schedule.clone()),
            None => {
                let min_ms = keys.get(PolicyKey::DelayedRetryMin).unsigned()?;
                let max_ms = keys.get(PolicyKey::DelayedRetryMax).unsigned()?;
                match keys.get(PolicyKey::DelayedRetryMultiplier).ratio() {
                    Some(multiplier) => RetryDelays::Exponential { min_ms, max_ms, multiplier },
                    None => RetryDelays::Linear { min_ms, max_ms },
                }
            }
        };
        let jitter = keys.get(PolicyKey::DelayedRetryJitter).ratio();
        let count = keys.get(PolicyKey::DelayedRetryCount).word()?;
        Some(Self { kind, delays, jitter, count })
    }

    /// The delay of a returned message, in milliseconds; none if it is ready at once. The same message waits as long
    /// again after a restart, because the jitter is made from `queue`, the message and the number of its deliveries.
    pub(crate) fn delay_ms(&self, failed: bool, queue: QueueNumber, entry: &Entry) -> Option<u64> {
        let delayed = match self.kind {
            DelayedRetryType::All => true,
            DelayedRetryType::Failed => failed,
            DelayedRetryType::Returned => !failed,
            DelayedRetryType::Disabled => false,
        };
        if !delayed {
            return None;
        }
        let attempt = self.count.of(entry);
        let delay_ms = self.delays.delay_ms(attempt);
        let Some(jitter) = self.jitter else { return Some(delay_ms) };
        let offset = offset(queue.0, entry.id.seq, attempt);
        let varied = scaled(delay_ms, jitter.as_f64().mul_add(offset, 1.0));
        Some(varied.min(self.delays.max_ms()).max(1))
    }
}

impl fmt::Display for DelayedRetry {
    /// The text of RabbitMQ's management API, with what Leveret adds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind == DelayedRetryType::Disabled {
            return f.write_str(self.kind.as_str());
        }
        write!(f, "{} (", self.kind.as_str())?;
        match &self.delays {
            RetryDelays::Linear { min_ms, max_ms } => {
                write!(f, "min: {min_ms}ms, max: {max_ms}ms")?;
            }
            RetryDelays::Exponential { min_ms, max_ms, multiplier } => {
                write!(f, "min: {min_ms}ms, max: {max_ms}ms, multiplier: {multiplier}")?;
            }
            RetryDelays::Schedule(schedule) => write!(f, "schedule: {}", schedule.as_str())?,
        }
        if let Some(jitter) = self.jitter {
            write!(f, ", jitter: {jitter}")?;
        }
        f.write_str(")")
    }
}

impl RetryDelays {
    /// The delay after so many deliveries, in milliseconds. No delivery counts as one.
    fn delay_ms(&self, attempt: u32) -> u64 {
        match self {
            Self::Linear { min_ms, max_ms } => {
                min_ms.saturating_mul(u64::from(attempt.max(1))).min(*max_ms)
            }
            Self::Exponential { min_ms, max_ms, multiplier } => {
                let before = i32::try_from(attempt.max(1) - 1).unwrap_or(i32::MAX);
                scaled(*min_ms, multiplier.as_f64().powi(before)).min(*max_ms)
            }
            Self::Schedule(schedule) => schedule.delay_ms(attempt),
        }
    }

    fn max_ms(&self) -> u64 {
        match self {
            Self::Linear { max_ms, .. } | Self::Exponential { max_ms, .. } => *max_ms,
            Self::Schedule(_) => u64::MAX,
        }
    }
}

impl DeliveryCount {
    /// The number of deliveries that `entry` has had.
    pub(crate) const fn of(self, entry: &Entry) -> u32 {
        match self {
            Self::Delivery => entry.delivery_count,
            Self::Acquired => entry.acquired_count,
        }
    }
}

/// `delay_ms` times `factor`, rounded; a product that has no number is the highest.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a conversion of a float to an integer saturates"
)]
fn scaled(delay_ms: u64, factor: f64) -> u64 {
    (delay_ms as f64 * factor).round() as u64
}

/// A number from -1 to 1 that looks random and is the same for the same numbers: the finalizer of `SplitMix64` over them.
#[expect(clippy::cast_precision_loss, reason = "53 of 64 bits are enough")]
fn offset(queue: u64, seq: u64, attempt: u32) -> f64 {
    let mut bits = queue;
    for number in [seq, u64::from(attempt)] {
        bits = bits.wrapping_add(number).wrapping_add(0x9E37_79B9_7F4A_7C15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
    }
    (bits as f64 / u64::MAX as f64).mul_add(2.0, -1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_delay_grows_up_to_the_longest() {
        let delays = |multiplier, max_ms| RetryDelays::Exponential {
            min_ms: 100,
            max_ms,
            multiplier: Ratio::of(multiplier).unwrap(),
        };
        let of = |delays: &RetryDelays| [0, 1, 2, 3, 4, 40, u32::MAX].map(|n| delays.delay_ms(n));
        assert_eq!(of(&delays(2.0, 700)), [100, 100, 200, 400, 700, 700, 700]);
        assert_eq!(of(&delays(1.5, 400)), [100, 100, 150, 225, 338, 400, 400]);
        assert_eq!(of(&delays(1.0, 700)), [100; 7]);
        assert_eq!(delays(2.0, u64::MAX).delay_ms(u32::MAX), u64::MAX);
    }

    #[test]
    fn offset_is_spread_evenly_and_stable() {
        let offsets: Vec<f64> = (0..10_000).map(|seq| offset(7, seq, 1)).collect();
        assert!(offsets.iter().all(|offset| (-1.0..=1.0).contains(offset)));
        let mean = offsets.iter().sum::<f64>() / 10_000.0;
        assert!(mean.abs() < 0.02, "{mean}");
        let low = offsets.iter().filter(|offset| **offset < -0.5).count();
        assert!((2_300..2_700).contains(&low), "{low}");
        assert_eq!(offset(7, 3, 1).to_bits(), offsets[3].to_bits());
        assert_ne!(offset(7, 3, 2).to_bits(), offsets[3].to_bits());
        assert_ne!(offset(8, 3, 1).to_bits(), offsets[3].to_bits());
    }
}
