//! Types of queues, as `x-queue-type` names them. The abilities of each type stand in `queue::kind`.

/// `x-queue-type`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum QueueType {
    /// `classic`.
    #[default]
    Classic,
    /// `quorum`.
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

    /// The type of that name.
    pub fn parse(name: &[u8]) -> Option<Self> {
        match name {
            b"classic" => Some(Self::Classic),
            b"quorum" => Some(Self::Quorum),
            _ => None,
        }
    }
}
