//! The limits of the alarms, changed while the node runs.

use management::{DiskFreeLimit, MemoryWatermark};

use crate::node::Node;
use crate::node::alarms;

impl management::AlarmLimits for Node {
    fn set_memory_watermark(&self, watermark: MemoryWatermark, by: &str) {
        self.alarm_limits.set_memory_watermark(watermark);
        let bytes = self.alarm_limits.memory_watermark_bytes();
        tracing::info!(user = by, bytes, "memory watermark set");
        alarms::look(self);
    }

    fn set_disk_free_limit(&self, limit: DiskFreeLimit, by: &str) {
        self.alarm_limits.set_disk_free_limit(limit);
        let bytes = self.alarm_limits.disk_free_limit_bytes();
        tracing::info!(user = by, bytes, "limit of free disk set");
        alarms::look(self);
    }
}
