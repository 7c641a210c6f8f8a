//! Snapshots of the broker, copied under a vhost's lock.

pub mod amount;
pub mod client;
pub mod cluster;
pub mod condition;
pub mod fields;
pub mod logins;
pub mod moment;
pub mod node;
pub mod queue;
pub mod queue_fields;
pub mod queue_levels;
pub mod replication;
pub mod scrape;
pub mod topology;
pub mod vhost;
