//! Metrics in Prometheus' text format, under RabbitMQ's names where RabbitMQ has them.
//!
//! The numbers are copied first (`snapshot::scrape`) and formatted afterwards, away from the threads that serve
//! clients. Families of metrics stand in tables by subject (`node`, `queues`, `clients`, `exchanges`, `global`,
//! `deaths`), in the groups of RabbitMQ's `/metrics/detailed` (`group`, `view`).
//!
//! - `/metrics`: sums over all objects
//! - `/metrics/per-object`: each object
//! - `/metrics/detailed`: the groups, vhosts and queues that the query selects
//! - `/metrics/memory-breakdown`: memory by use

mod clients;
mod deaths;
mod detailed;
mod exchanges;
mod family;
mod global;
mod group;
mod links;
mod node;
mod pieces;
mod queues;
mod replicas;
pub(crate) mod routes;
mod sums;
mod text;
mod view;
