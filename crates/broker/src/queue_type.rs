//! Queue types, as named by `x-queue-type`. `queue::kind` lists the abilities of each type.

/// A queue type.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum QueueType {
    /// A queue of type `classic`.
    #[default]
    Classic,
    /// A queue of type `quorum`.
    Quorum,
}

impl QueueType {
    /// All types, in the order listings show them.
    pub const ALL: [Self; 2] = [Self::Classic, Self::Quorum];

    /// The value of `x-queue-type`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Quorum => "quorum",
        }
    }

    /// The name of the type in reply texts.
    pub const fn module(self) -> &'static str {
        match self {
            Self::Classic => "rabbit_classic_queue",
            Self::Quorum => "rabbit_quorum_queue",
        }
    }

    /// The type with this name.
    pub fn parse(name: &[u8]) -> Option<Self> {
        match name {
            b"classic" => Some(Self::Classic),
            b"quorum" => Some(Self::Quorum),
            _ => None,
        }
    }
}
