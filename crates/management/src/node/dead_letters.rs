//! Where dead letters go.

use broker::DeadLetterMap;

/// The dead-letter maps of vhosts.
pub trait DeadLetters {
    /// The dead-letter map of a vhost, if there is one of that name.
    fn dead_letter_map(&self, vhost: &str) -> Option<DeadLetterMap>;
}
