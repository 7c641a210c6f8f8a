//! The way of a node into a cluster: nodes found by DNS, questions to other nodes, and the wait for a founding.

pub(crate) mod discovery;
#[cfg(test)]
mod discovery_tests;
pub(crate) mod join;
pub(crate) mod joiner;
pub(crate) mod nodes_at_start;
mod seek;
