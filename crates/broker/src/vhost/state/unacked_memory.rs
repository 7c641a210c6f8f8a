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
    /// The current bound for one channel, in bytes; none for unlimited.
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

    /// The usage with an eighth of the limit in reserve, so that a channel that has waited then has room for
    /// a while.
    fn with_reserve(self) -> Self {
        Self { bytes: self.bytes.saturating_add(self.bytes_max / 8), ..self }
    }
}

impl UnackedMemory {
    /// Creates the state without deliveries; channels wait when all together take more than `bytes_max`.
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self {
            usage: Usage { bytes: 0, bytes_max },
            looked_at: None,
            waiting: BTreeSet::new(),
            found: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.usage.bytes
    }

    /// True if a channel may have another unacknowledged delivery.
    #[inline]
    pub(crate) fn leaves_room(&self, channel: &Channel) -> bool {
        self.usage.leaves_room(channel)
    }

    /// Counts a delivery that needs an acknowledgement.
    #[inline]
    pub(crate) fn add(&mut self, channel: &mut Channel, message: &Message) {
        let bytes = message.memory_bytes();
        self.usage.bytes += bytes;
        channel.unacked_bytes += bytes;
    }

    /// Counts the end of a delivery of `bytes` bytes; its channel counts separately.
    #[inline]
    pub(crate) fn subtract(&mut self, bytes: u64) {
        assert!(bytes <= self.usage.bytes, "a delivery ended twice, or was never counted");
        self.usage.bytes -= bytes;
    }

    // ---- waiting channels ----

    /// Notes that a consumer of this channel found no memory.
    #[inline]
    pub(crate) fn found_without(&mut self, channel: ChannelKey) {
        self.found.push(channel);
    }

    /// True if channels found no memory and are not listed yet.
    #[inline]
    pub(crate) fn has_found(&self) -> bool {
        !self.found.is_empty()
    }

    /// Takes the channels that found no memory.
    #[inline]
    pub(crate) fn take_found(&mut self) -> Vec<ChannelKey> {
        std::mem::take(&mut self.found)
    }

    /// Lists a waiting channel; false if it is already listed.
    pub(crate) fn list_waiting(&mut self, channel: ChannelKey) -> bool {
        if !self.waiting.insert(channel) {
            return false;
        }
        let share = self.usage.with_reserve().channel_bytes_max();
        self.looked_at = share.into_iter().chain(self.looked_at).min();
        true
    }

    /// Removes a channel that is closed or continues.
    #[inline]
    pub(crate) fn stop_waiting(&mut self, channel: ChannelKey) {
        self.waiting.remove(&channel);
    }

    /// True if any channel waits.
    #[inline]
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// True if this channel waits; for consistency checks.
    #[inline]
    pub(crate) fn is_waiting(&self, channel: ChannelKey) -> bool {
        self.waiting.contains(&channel)
    }

    /// Takes the channels that have room now that `acknowledged` has acknowledged something, and closed
    /// channels; `channel` looks up a channel.
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
        // As long as a share has not grown, only the channel itself can have gained room.
        if !is_more && !self.waiting.contains(&acknowledged) {
            return Vec::new();
        }
        self.looked_at = channel_bytes_max;
        let has_room =
            |key: &ChannelKey| channel(*key).is_none_or(|channel| usage.leaves_room(channel));
        self.waiting.iter().copied().filter(has_room).collect()
    }
}
