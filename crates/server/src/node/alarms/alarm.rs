//! An alarm: the reason why publishers are blocked.

/// The reason why publishers are blocked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Alarm {
    /// The process uses more memory than the watermark.
    Memory,
    /// Less disk space is free than the limit.
    Disk,
    /// Memory and disk are short.
    MemoryAndDisk,
}

impl Alarm {
    /// The alarm for a shortage of memory, of disk, or of both.
    pub(super) fn of(memory: bool, disk: bool) -> Option<Self> {
        match (memory, disk) {
            (false, false) => None,
            (true, false) => Some(Self::Memory),
            (false, true) => Some(Self::Disk),
            (true, true) => Some(Self::MemoryAndDisk),
        }
    }

    /// Both alarms as one.
    pub(super) fn and(self, other: Self) -> Self {
        if self == other { self } else { Self::MemoryAndDisk }
    }

    /// Reason in `connection.blocked`.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Memory => "low on memory",
            Self::Disk => "low on disk",
            Self::MemoryAndDisk => "low on memory & disk",
        }
    }

    pub(crate) const fn is_of_memory(self) -> bool {
        matches!(self, Self::Memory | Self::MemoryAndDisk)
    }

    pub(crate) const fn is_of_disk(self) -> bool {
        matches!(self, Self::Disk | Self::MemoryAndDisk)
    }
}
