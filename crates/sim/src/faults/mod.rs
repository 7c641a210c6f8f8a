//! The faults of a run: those that the cluster must survive, and those that the checks must see.

mod nemeses;
pub(crate) mod sabotage;
mod versions;
