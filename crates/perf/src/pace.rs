//! What producers with a rate wait for.
//!
//! The runtime's timers come once a millisecond, in which a fast producer would send hundreds of
//! messages at once, and measure how long these stand in line. A thread of its own is finer.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::Notify;

/// How often producers with a rate send: what is due in this time goes out together.
const TICK: Duration = Duration::from_micros(100);

/// A rate, and the ticks by which producers keep it.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    /// Messages a second of each producer.
    rate: u32,
    ticks: Arc<Notify>,
}

impl Pace {
    /// Starts a thread that ticks until nobody keeps this pace any more.
    ///
    /// # Errors
    /// When the system has no thread left.
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

    /// The messages that are due when a producer has sent for so long.
    pub(crate) fn due(&self, elapsed: Duration) -> u64 {
        (elapsed.as_secs_f64() * f64::from(self.rate)) as u64
    }
}
