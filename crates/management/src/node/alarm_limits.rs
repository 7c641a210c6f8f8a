//! The limits at which publishers are blocked, which can be changed while the node runs.

/// How much memory the process may hold before publishers are blocked.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum MemoryWatermark {
    /// A share of the machine's memory, from 0 to 1.
    Relative(f64),
    /// Bytes.
    Absolute(u64),
}

/// How much must be free on the disk before publishers are blocked.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum DiskFreeLimit {
    /// Bytes.
    Absolute(u64),
    /// So many times the machine's memory.
    Relative(f64),
}

/// Changes that are in force when the call returns, alarms included, until the node stops.
pub trait AlarmLimits {
    /// Sets the memory watermark.
    fn set_memory_watermark(&self, watermark: MemoryWatermark, by: &str);

    /// Sets how much must be free on the disk.
    fn set_disk_free_limit(&self, limit: DiskFreeLimit, by: &str);
}
