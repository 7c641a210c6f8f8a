//! The links and streams of this node: how they are opened and accepted, how they run, and why they are refused.

pub(crate) mod dial;
mod hearing;
mod link;
mod logged_problems;
mod majority_log;
mod problems;
pub(crate) mod registry;
pub(crate) mod serve;
mod shake;
pub(crate) mod streams;
mod users;
