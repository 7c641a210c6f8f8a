//! Counters and latencies of a run.
//!
//! Tasks update a counter once per read or write, never once per message.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::Serialize;

/// Significant digits of a latency: an error of 1 %, and a few kilobytes for each task.
const DIGITS: u8 = 2;

/// Defines counters and a copy of them at one instant.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident)*) => {
        /// Counters of a run.
        #[derive(Debug, Default)]
        pub(crate) struct Counters { $($(#[$doc])* pub(crate) $name: AtomicU64,)* }

        /// Values of the counters at one instant, or their growth between two.
        #[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
        pub(crate) struct Counts { $($(#[$doc])* pub(crate) $name: u64,)* }

        impl Counters {
            /// The current values.
            pub(crate) fn read(&self) -> Counts {
                Counts { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }

        impl Counts {
            /// Growth since `earlier`.
            pub(crate) fn since(&self, earlier: &Self) -> Self {
                Self { $($name: self.$name - earlier.$name,)* }
            }

            /// Growth per second when this is the growth in `elapsed`.
            pub(crate) fn per_second(&self, elapsed: Duration) -> Self {
                Self { $($name: per_second(self.$name, elapsed),)* }
            }

            /// Every counter with its name.
            pub(crate) fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }
        }
    };
}

counters! {
    /// Messages sent.
    published
    /// Messages the broker has confirmed.
    confirmed
    /// Messages the broker has refused with basic.nack.
    refused
    /// Messages that were returned as unroutable.
    returned
    /// Messages delivered to consumers.
    consumed
    /// Bytes of the bodies of consumed messages.
    consumed_bytes
    /// Messages that consumers rejected.
    rejected
    /// Messages that arrived in dead-letter queues.
    dead_lettered
    /// Messages that arrived there before they were due.
    early
    /// Messages that arrived there a second time.
    doubled
    /// Connections, channels or queues that were opened and closed.
    churned
    /// Times that the broker asked publishers to wait.
    blocked
}

/// Latencies of one task, in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Recorder(Arc<Mutex<Histogram<u64>>>);

impl Recorder {
    /// Locks the recorder, for all deliveries of one read.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Histogram<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A kind of latency, recorded by many tasks and read once a second.
#[derive(Debug)]
pub(crate) struct Latency {
    recorders: Mutex<Vec<Recorder>>,
}

impl Latency {
    fn new() -> Self {
        Self { recorders: Mutex::new(Vec::new()) }
    }

    /// A recorder for one more task.
    pub(crate) fn recorder(&self) -> Recorder {
        let recorder = Recorder(Arc::new(Mutex::new(histogram())));
        self.recorders.lock().unwrap_or_else(PoisonError::into_inner).push(recorder.clone());
        recorder
    }

    /// Takes all latencies since the last call.
    pub(crate) fn take(&self) -> Histogram<u64> {
        let mut all = histogram();
        for recorder in self.recorders.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let mut own = recorder.lock();
            all += &*own;
            own.reset();
        }
        all
    }
}

/// Records a time. Times of 0 are recorded as 1 ns, the smallest value of a histogram.
pub(crate) fn record(histogram: &mut Histogram<u64>, ns: u64) {
    histogram.record(ns.max(1)).expect("a histogram that grows takes every value");
}

/// An empty histogram of nanoseconds that grows as needed.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new(DIGITS).expect("two digits are allowed")
}

/// Metrics that the tasks of a run share.
#[derive(Debug)]
pub(crate) struct Metrics {
    began: Instant,
    pub(crate) counters: Counters,
    /// From sending a message to its delivery to a consumer.
    pub(crate) latency: Latency,
    /// From sending a message to its arrival in a dead-letter queue, when a consumer rejected it.
    pub(crate) dead_letter_latency: Latency,
    /// From sending a message to its confirm.
    pub(crate) confirm_latency: Latency,
    /// From the deadline of a message to its arrival in a dead-letter queue.
    pub(crate) lateness: Latency,
}

impl Metrics {
    /// Starts the clock of a run.
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            counters: Counters::default(),
            latency: Latency::new(),
            dead_letter_latency: Latency::new(),
            confirm_latency: Latency::new(),
            lateness: Latency::new(),
        }
    }

    /// Nanoseconds since the run began.
    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Rate per second for `count` events in `elapsed`.
fn per_second(count: u64, elapsed: Duration) -> u64 {
    (count as f64 / elapsed.as_secs_f64()).round() as u64
}

/// Adds to a counter.
pub(crate) fn count(counter: &AtomicU64, by: u64) {
    if by > 0 {
        counter.fetch_add(by, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_taken_once_from_all_tasks() {
        let latency = Latency::new();
        let (one, other) = (latency.recorder(), latency.recorder());
        one.lock().record(1_000).expect("fits");
        other.lock().record(3_000).expect("fits");
        let taken = latency.take();
        assert_eq!((taken.len(), taken.min(), taken.max()), (2, 1_000, 3_007));
        assert_eq!(latency.take().len(), 0);
    }

    #[test]
    fn counts_are_differences() {
        let counters = Counters::default();
        count(&counters.published, 5);
        let earlier = counters.read();
        count(&counters.published, 2);
        assert_eq!(counters.read().since(&earlier), Counts { published: 2, ..Counts::default() });
    }
}
