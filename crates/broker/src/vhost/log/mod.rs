//! The boundary to the log: positions that answers wait for, recovery, and what recovery must give.

mod check;
mod durable;
pub(super) mod replay;
pub(super) mod undeclared;
