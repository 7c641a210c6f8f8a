//! Where dead letters go, copied in slices, so that clients need not wait for all of it.

use broker::{DeadLetterMap, DeadLetterMapTaking, QueueId};

use crate::limits::MAPPED_PER_LOCK;
use crate::node::Node;

impl management::DeadLetters for Node {
    fn dead_letter_map(&self, vhost: &str) -> Option<DeadLetterMap> {
        let handle = self.vhosts.get(vhost)?;
        let queues: Vec<QueueId> = handle.read(|v, _| v.queues().map(|(id, _)| id).collect());
        let mut taking = DeadLetterMapTaking::default();
        for mut slice in queues.chunks(MAPPED_PER_LOCK) {
            while !slice.is_empty() {
                let done = handle.read(|v, _| taking.sources(v, slice));
                slice = slice.get(done..).unwrap_or_default();
            }
        }
        for slice in taking.missing().chunks(MAPPED_PER_LOCK) {
            handle.read(|v, _| taking.targets(v, slice));
        }
        Some(taking.end())
    }
}
