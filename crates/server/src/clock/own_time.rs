//! The time that this process has run.
//!
//! A process may stand still: it is stopped by a signal, its virtual machine is paused, or others take all processors. What
//! it waits for then looks late, although nobody was late. Timers that accuse a disk, a peer or a client therefore count
//! this time. A thread looks at the clock at short intervals; of the time between two looks no more counts than a little,
//! so that a standstill is excluded before the thread has noticed it.

use std::pin::pin;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::time::error::Elapsed;

use crate::limits::{OWN_LOOK_INTERVAL, OWN_STANDSTILL_MIN, OWN_STANDSTILL_TOLD};

/// A moment by the time that this process has run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct RunTime(Duration);

impl RunTime {
    /// The time since an earlier moment, without standstills.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// Microseconds since the begin.
    pub(crate) fn as_micros(self) -> u64 {
        u64::try_from(self.0.as_micros()).unwrap_or(u64::MAX)
    }
}

/// The looks at the clock.
#[derive(Debug)]
struct OwnTime {
    began: Instant,
    /// The last look; none if nobody looks, so that all time counts.
    looked: Option<Instant>,
    /// Standstills up to the last look.
    stood_still: Duration,
}

impl OwnTime {
    fn new(began: Instant) -> Self {
        Self { began, looked: None, stood_still: Duration::ZERO }
    }

    /// The standstill since the last look, up to a time.
    fn standstill(&self, now: Instant) -> Duration {
        let since = self.looked.map(|looked| now.saturating_duration_since(looked));
        since.map(|since| since.saturating_sub(OWN_STANDSTILL_MIN)).unwrap_or_default()
    }

    /// A look at the clock. Returns the standstill since the last one.
    fn look(&mut self, now: Instant) -> Duration {
        let standstill = self.standstill(now);
        self.stood_still += standstill;
        self.looked = Some(now);
        standstill
    }

    /// All standstills up to a time.
    fn stood_still(&self, now: Instant) -> Duration {
        self.stood_still + self.standstill(now)
    }

    fn run_time(&self, now: Instant) -> RunTime {
        let all = now.saturating_duration_since(self.began);
        RunTime(all.saturating_sub(self.stood_still(now)))
    }
}

/// The time of this process, with the thread that looks.
fn own_time() -> &'static Mutex<OwnTime> {
    static OWN_TIME: OnceLock<Mutex<OwnTime>> = OnceLock::new();
    OWN_TIME.get_or_init(|| {
        let thread = std::thread::Builder::new().name("own-time".to_owned());
        if let Err(error) = thread.spawn(look) {
            tracing::warn!(%error, "cannot start the thread that notices standstills of this process");
        }
        Mutex::new(OwnTime::new(Instant::now()))
    })
}

/// Looks at the clock as long as the process lives.
fn look() {
    loop {
        let standstill = own_time().lock().look(Instant::now());
        if standstill >= OWN_STANDSTILL_TOLD {
            let stood_still_ms = standstill.as_millis();
            tracing::warn!(
                stood_still_ms,
                "this process stood still: it, or its machine, was stopped, or had no processor"
            );
        }
        std::thread::sleep(OWN_LOOK_INTERVAL);
    }
}

/// The present moment by the time that this process has run.
pub(crate) fn now() -> RunTime {
    own_time().lock().run_time(Instant::now())
}

/// The time for which this process stood still so far.
pub(crate) fn stood_still() -> Duration {
    reading().1
}

/// The present moment, and the time for which this process stood still up to it.
pub(crate) fn reading() -> (Instant, Duration) {
    let own = own_time().lock();
    let now = Instant::now();
    (now, own.stood_still(now))
}

/// Waits for a future, no longer than a time that this process has run.
///
/// # Errors
/// If the future has not completed by then.
pub(crate) async fn timeout<T>(
    limit: Duration,
    future: impl Future<Output = T>,
) -> Result<T, Elapsed> {
    let (mut future, began, mut left) = (pin!(future), now(), limit);
    loop {
        match tokio::time::timeout(left, future.as_mut()).await {
            Ok(done) => return Ok(done),
            Err(elapsed) => {
                left = limit.saturating_sub(now().since(began));
                if left.is_zero() {
                    return Err(elapsed);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn standstill_counts_little_before_it_is_noticed_and_after() {
        let began = Instant::now();
        let mut own = OwnTime::new(began);
        let mut now = began;
        while now < began + SECOND {
            assert_eq!(own.look(now), Duration::ZERO);
            now += OWN_LOOK_INTERVAL;
        }
        let looked = now;
        own.look(looked);
        let before = own.run_time(looked);
        let resumed = looked + 60 * SECOND;
        // Whoever is first after the standstill sees no more of it than a little.
        assert_eq!(own.run_time(resumed).since(before), OWN_STANDSTILL_MIN);
        assert_eq!(own.stood_still(resumed), 60 * SECOND - OWN_STANDSTILL_MIN);
        assert_eq!(own.look(resumed), 60 * SECOND - OWN_STANDSTILL_MIN);
        assert_eq!(own.run_time(resumed).since(before), OWN_STANDSTILL_MIN);
        let later = resumed + OWN_LOOK_INTERVAL;
        assert_eq!(own.run_time(later).since(before), OWN_STANDSTILL_MIN + OWN_LOOK_INTERVAL);
    }

    #[test]
    fn time_counts_while_nobody_looks() {
        let began = Instant::now();
        let own = OwnTime::new(began);
        assert_eq!(own.run_time(began + 9 * SECOND), RunTime(9 * SECOND));
    }

    #[tokio::test]
    async fn timeout_gives_a_result_or_ends() {
        let never = std::future::pending::<()>();
        assert!(timeout(Duration::from_millis(5), never).await.is_err());
        assert_eq!(timeout(60 * SECOND, std::future::ready(7)).await, Ok(7));
    }
}
