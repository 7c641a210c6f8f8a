//! Metrics.

use std::pin::Pin;

use crate::snapshot::scrape::Scrape;

/// A text, once it is made.
pub type Made<'a> = Pin<Box<dyn Future<Output = String> + Send + 'a>>;

/// What metrics are made of, and where they are made.
pub trait Metrics {
    /// Copies what is the case, of the vhosts that `wants` says yes to.
    fn scrape(&self, wants: &dyn Fn(&str) -> bool) -> Scrape;

    /// Makes a text away from the threads that serve clients, because that may take long.
    fn aside(&self, make: Box<dyn FnOnce() -> String + Send>) -> Made<'_>;
}
