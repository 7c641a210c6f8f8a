//! How much memory unacknowledged deliveries may take.
//!
//! A message that a client has and does not acknowledge stays in memory, and behind it the next page of a
//! long queue is read: a consumer without prefetch that never acknowledges would get a whole backlog into
//! memory. So deliveries to a channel wait while the vhost has more unacknowledged than it may, and the
//! channel more than its share. A client that acknowledges goes on, whatever others do; one that does not
//! waits until it does, or until others have made room. Alarms do not matter here: whoever takes messages
//! and acknowledges them makes room.
//!
//! COMPAT: unacknowledged deliveries: a channel that has more than its share and does not acknowledge gets
//! nothing more; RabbitMQ's gets all there is.

use crate::channel::Channel;
use crate::effect::Event;
use crate::limits::{UNACKED_BYTES_PER_CHANNEL_MIN, UNACKED_CHANNEL_SHARE};
use crate::message::Message;
use crate::refusal::Refusal;
use crate::route::At;
use crate::vhost::Vhost;

/// Memory of unacknowledged deliveries of a vhost, in bytes.
#[derive(Clone, Copy, Debug)]
pub(in crate::vhost) struct UnackedMemory {
    bytes: u64,
    bytes_max: u64,
    /// What one channel could have when all that wait were looked at.
    looked_at: Option<u64>,
}

impl UnackedMemory {
    pub(in crate::vhost) fn new(bytes_max: u64) -> Self {
        Self { bytes: 0, bytes_max, looked_at: None }
    }

    /// How much one channel may have now; none if as much as it likes.
    fn channel_bytes_max(self) -> Option<u64> {
        if self.bytes < self.bytes_max {
            return None;
        }
        let is_far_beyond = self.bytes / 2 >= self.bytes_max;
        let share = if is_far_beyond { 0 } else { self.bytes_max / UNACKED_CHANNEL_SHARE };
        Some(share.max(UNACKED_BYTES_PER_CHANNEL_MIN))
    }

    /// Whether a channel may have another delivery that it is to acknowledge.
    pub(in crate::vhost) fn leaves_room(self, channel: &Channel) -> bool {
        self.channel_bytes_max().is_none_or(|max| channel.unacked_bytes < max)
    }

    /// As if there were an eighth more: what was held back goes on when there is room for a while.
    fn with_reserve(self) -> Self {
        Self { bytes: self.bytes.saturating_add(self.bytes_max / 8), ..self }
    }

    pub(in crate::vhost) fn add(&mut self, channel: &mut Channel, message: &Message) {
        let bytes = message.memory_bytes();
        self.bytes += bytes;
        channel.unacked_bytes += bytes;
    }

    /// A delivery of so many bytes is no longer unacknowledged; its channel counts that itself.
    pub(in crate::vhost) fn subtract(&mut self, bytes: u64) {
        self.bytes -= bytes;
    }
}

impl Vhost {
    /// Memory that unacknowledged deliveries take, about, in bytes.
    pub fn unacked_bytes(&self) -> u64 {
        self.unacked_memory.bytes
    }

    /// Refuses a `basic.get` on a channel that has its share: it cannot be answered with nothing, nor wait
    /// for an acknowledgement that the client may send only after the answer.
    pub(in crate::vhost) fn check_unacked_memory(&self, at: At) -> Result<(), Refusal> {
        let channel = self.connections.get(at.connection).and_then(|c| c.channels.get(&at.channel));
        let has_room = |channel: &Channel| self.unacked_memory.leaves_room(channel);
        let Some(channel) = channel.filter(|channel| !has_room(channel)) else {
            return Ok(());
        };
        Err(Refusal::precondition_failed(format!(
            "{} bytes of messages are unacknowledged on channel {}, and {} in vhost '{}': acknowledge \
             some first",
            channel.unacked_bytes, at.channel, self.unacked_memory.bytes, self.name
        )))
    }

    /// A consumer found no memory for its channel's deliveries, which is told once for each channel.
    pub(in crate::vhost) fn note_without_memory(&mut self) {
        for at in std::mem::take(&mut self.found_without_memory) {
            if !self.channels_without_memory.insert(at) {
                continue;
            }
            let share = self.unacked_memory.with_reserve().channel_bytes_max();
            let known = self.unacked_memory.looked_at;
            self.unacked_memory.looked_at = share.into_iter().chain(known).min();
            let Some(connection) = self.connections.get_mut(at.connection) else { continue };
            let name = connection.name.clone();
            let Some(channel) = connection.channels.get_mut(&at.channel) else { continue };
            if !std::mem::replace(&mut channel.was_without_memory, true) {
                let unacked_bytes = channel.unacked_bytes;
                self.event(Event::DeliveriesWait {
                    connection: name,
                    channel: at.channel,
                    unacked_bytes,
                });
            }
        }
    }

    /// Deliveries go on to the channels that have room now that one has acknowledged something.
    pub(in crate::vhost) fn go_on_with_memory(&mut self, acknowledged: At) {
        if self.channels_without_memory.is_empty() {
            return;
        }
        let memory = self.unacked_memory.with_reserve();
        let looked_at = self.unacked_memory.looked_at;
        let channel_bytes_max = memory.channel_bytes_max();
        let is_more = looked_at
            .is_some_and(|before| channel_bytes_max.is_none_or(|bytes_max| bytes_max > before));
        // As long as a share is what it was only the channel itself can have room.
        if !is_more && !self.channels_without_memory.contains(&acknowledged) {
            return;
        }
        self.unacked_memory.looked_at = channel_bytes_max;
        let has_room = |at: &At| {
            let connection = self.connections.get(at.connection);
            let channel = connection.and_then(|connection| connection.channels.get(&at.channel));
            channel.is_none_or(|channel| memory.leaves_room(channel))
        };
        let with_room: Vec<At> =
            self.channels_without_memory.iter().copied().filter(has_room).collect();
        for at in with_room {
            self.channels_without_memory.remove(&at);
            self.unpark_channel(at);
        }
    }

    /// What is counted and what is held, for checks.
    pub(in crate::vhost) fn check_unacked_bytes(&self, broken: &mut Vec<String>) {
        let mut sum = 0;
        for (at, channel) in self.channels() {
            let bytes = channel.deliveries().map(|unacked| unacked.entry.message.memory_bytes());
            let bytes: u64 = bytes.sum();
            if bytes != channel.unacked_bytes {
                let counted = channel.unacked_bytes;
                broken.push(format!("{at:?} counts {counted} unacknowledged bytes, holds {bytes}"));
            }
            sum += bytes;
        }
        if sum != self.unacked_memory.bytes {
            let counted = self.unacked_memory.bytes;
            broken.push(format!("{counted} unacknowledged bytes are counted, {sum} held"));
        }
    }
}
