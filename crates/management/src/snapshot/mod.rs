//! Snapshots of the broker, copied under a vhost's lock.

pub(crate) mod amount;
pub(crate) mod client;
pub(crate) mod cluster;
pub(crate) mod condition;
pub(crate) mod fields;
pub(crate) mod listed;
pub(crate) mod logins;
pub(crate) mod moment;
pub(crate) mod node;
pub(crate) mod queue;
pub(crate) mod queue_fields;
pub(crate) mod queue_levels;
pub(crate) mod replication;
pub(crate) mod scrape;
pub(crate) mod topology;
pub(crate) mod vhost;
