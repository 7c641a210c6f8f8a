//! Memory of unacknowledged deliveries, and the channels whose deliveries wait for some of it.

use std::collections::BTreeSet;

use crate::channel::Channel;
use crate::channel_key::ChannelKey;
use crate::limits::{UNACKED_BYTES_PER_CHANNEL_MIN, UNACKED_CHANNEL_SHARE};
use crate::message::Message;

/// Memory of the unacknowledged deliveries of a vhost.
#[derive(Debug)]
pub(crate) struct UnackedMemory {
    usage: Usage,
    /// The limit of one channel when all that wait were last checked, in bytes.
    looked_at: Option<u64>,
    /// Channels whose deliveries wait.
    waiting: BTreeSet<ChannelKey>,
    /// Channels that were found without memory in this call.
    found: Vec<ChannelKey>,
}

#[derive(Clone, Copy, Debug)]
struct Usage {
    bytes: u64,
    bytes_max: u64,
}

impl Usage {
    /// The most that one channel may have now, in bytes; none without limit.
    fn channel_bytes_max(self) -> Option<u64> {
        if self.bytes < self.bytes_max {
            return None;
        }
        let is_far_beyond = self.bytes / 2 >= self.bytes_max;
        let share = if is_far_beyond { 0 } else { self.bytes_max / UNACKED_CHANNEL_SHARE };
        Some(share.max(UNACKED_BYTES_PER_CHANNEL_MIN))
    }

    fn leaves_room(self, channel: &Channel) -> bool {
        self.channel_bytes_max().is_none_or(|max| channel.unacked_bytes < max)
    }

    /// The usage with an eighth of the limit in reserve: a channel that waited goes on when there is room for a
    /// while.
    fn with_reserve(self) -> Self {
        Self { bytes: self.bytes.saturating_add(self.bytes_max / 8), ..self }
    }
}

impl UnackedMemory {
    /// No deliveries; channels wait when all take more than `bytes_max`.
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self {
            usage: Usage { bytes: 0, bytes_max },
            looked_at: None,
            waiting: BTreeSet::new(),
            found: Vec::new(),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.usage.bytes
    }

    /// True if a channel may have another delivery that it is to acknowledge.
    pub(crate) fn leaves_room(&self, channel: &Channel) -> bool {
        self.usage.leaves_room(channel)
    }

    /// Counts a delivery that a channel is to acknowledge.
    pub(crate) fn add(&mut self, channel: &mut Channel, message: &Message) {
        let bytes = message.memory_bytes();
        self.usage.bytes += bytes;
        channel.unacked_bytes += bytes;
    }

    /// Counts the end of a delivery of so many bytes; its channel counts that itself.
    pub(crate) fn subtract(&mut self, bytes: u64) {
        assert!(bytes <= self.usage.bytes, "a delivery ended twice, or was never counted");
        self.usage.bytes -= bytes;
    }

    // ---- channels that wait ----

    /// A consumer of this channel has found no memory.
    pub(crate) fn found_without(&mut self, channel: ChannelKey) {
        self.found.push(channel);
    }

    /// True if channels were found without memory and are not listed yet.
    pub(crate) fn has_found(&self) -> bool {
        !self.found.is_empty()
    }

    /// Takes the channels that were found without memory.
    pub(crate) fn take_found(&mut self) -> Vec<ChannelKey> {
        std::mem::take(&mut self.found)
    }

    /// Lists a channel whose deliveries wait; false if it is listed.
    pub(crate) fn list_waiting(&mut self, channel: ChannelKey) -> bool {
        if !self.waiting.insert(channel) {
            return false;
        }
        let share = self.usage.with_reserve().channel_bytes_max();
        self.looked_at = share.into_iter().chain(self.looked_at).min();
        true
    }

    /// The channel is closed or goes on.
    pub(crate) fn stop_waiting(&mut self, channel: ChannelKey) {
        self.waiting.remove(&channel);
    }

    /// True if deliveries of any channel wait.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// True if deliveries of this channel wait; for checks.
    pub(crate) fn is_waiting(&self, channel: ChannelKey) -> bool {
        self.waiting.contains(&channel)
    }

    /// Channels that have room now that `acknowledged` has acknowledged something, and channels that are
    /// closed; `channel` looks a channel up.
    pub(crate) fn with_room<'a>(
        &mut self,
        acknowledged: ChannelKey,
        channel: impl Fn(ChannelKey) -> Option<&'a Channel>,
    ) -> Vec<ChannelKey> {
        let usage = self.usage.with_reserve();
        let channel_bytes_max = usage.channel_bytes_max();
        let is_more = self
            .looked_at
            .is_some_and(|before| channel_bytes_max.is_none_or(|bytes_max| bytes_max > before));
        // As long as a share is what it was only the channel itself can have room.
        if !is_more && !self.waiting.contains(&acknowledged) {
            return Vec::new();
        }
        self.looked_at = channel_bytes_max;
        let has_room =
            |key: &ChannelKey| channel(*key).is_none_or(|channel| usage.leaves_room(channel));
        self.waiting.iter().copied().filter(has_room).collect()
    }
}
