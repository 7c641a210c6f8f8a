//! The two kinds of groups that a run may be of.

/// The content of the group of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupContent {
    /// A vhost, with clients.
    Vhost,
    /// The metadata of a cluster, with operators.
    Metadata,
}

/// Seeds from one whose group has metadata to the next, and the first.
const METADATA_SEEDS: (u64, u64) = (8, 7);

impl GroupContent {
    /// The content of the group of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let (every, first) = METADATA_SEEDS;
        if seed % every == first { Self::Metadata } else { Self::Vhost }
    }
}
