//! The part of a vhost in a change of its leader.

use crate::time::Time;

/// The state of a vhost that hands its lead over, and what its own lead began with.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct HandOverState {
    /// True while nothing is delivered, because another node is to lead.
    pub(crate) is_halted: bool,
    /// Time until which a leader that was lost may deliver what becomes due.
    pub(crate) cut_off_until: Time,
}
