//! The boundary to the log: positions that answers wait for, recovery, and checks of its result.

mod check;
mod check_sums;
pub(super) mod divergence;
mod durable;
mod follow;
pub(super) mod replay;
pub(super) mod undeclared;
