//! Copies of the state of the broker at one moment.

pub(crate) mod client;
pub(crate) mod fields;
pub(crate) mod logins;
pub(crate) mod node;
pub(crate) mod queue;
pub(crate) mod scrape;
pub(crate) mod topology;
pub(crate) mod vhost;
