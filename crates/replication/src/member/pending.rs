//! The work of a turn between its beginning and its end.

use storage::HardState;

use crate::clock::LeaderClock;
use crate::engine::{Outgoing, Work};

/// State of a turn.
#[derive(Debug)]
pub(super) enum Turn {
    /// None is under way.
    Idle,
    /// Begun, perhaps written.
    Begun(Box<Pending>),
}

/// Work that is begun and not ended.
#[derive(Debug, Default)]
pub(super) struct Pending {
    pub(super) work: Option<Work>,
    /// The hard state to be saved first.
    pub(super) hard_state: Option<HardState>,
    pub(super) is_written: bool,
    /// The axes to tell candidates, on the own clock, as they were known at the beginning.
    pub(super) known: Vec<LeaderClock>,
    /// Messages that wait for the write although a leader's do not: its term is not durable.
    pub(super) held: Vec<Outgoing>,
}
