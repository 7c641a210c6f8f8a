//! Ticks for producers with a rate.
//!
//! The runtime's timers have a resolution of a millisecond. A fast producer would send hundreds of messages
//! per tick, and the measured latency would include the time that they wait for each other. A thread of
//! its own ticks more often.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::Notify;

/// Interval at which producers with a rate send; the messages due in one interval are sent together.
const TICK: Duration = Duration::from_micros(100);

/// A rate, and the ticks that producers wait for.
#[derive(Clone, Debug)]
pub(crate) struct SendRate {
    /// Messages per second of each producer.
    rate: u32,
    ticks: Arc<Notify>,
}

impl SendRate {
    /// Starts a thread that ticks until all clones of this value are dropped.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(crate) fn start(rate: u32) -> io::Result<Self> {
        let notify = Arc::new(Notify::new());
        let told = Arc::downgrade(&notify);
        thread::Builder::new().name("pace".to_owned()).spawn(move || {
            while let Some(notify) = told.upgrade() {
                notify.notify_waiters();
                drop(notify);
                thread::sleep(TICK);
            }
        })?;
        Ok(Self { rate, ticks: notify })
    }

    /// Waits for the next tick.
    pub(crate) async fn tick(&self) {
        self.ticks.notified().await;
    }

    /// Number of messages that are due when a producer has sent for `elapsed`.
    pub(crate) fn due(&self, elapsed: Duration) -> u64 {
        (elapsed.as_secs_f64() * f64::from(self.rate)) as u64
    }
}
