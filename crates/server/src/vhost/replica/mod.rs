//! The replica of a vhost on this node: found, opened, opened anew, and driven by the threads of replication.

mod opening;
mod reopening;
mod replicated;
#[cfg(test)]
mod tests;
