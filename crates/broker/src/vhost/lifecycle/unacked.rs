//! The limit on the memory of unacknowledged deliveries.
//!
//! A message that a client has and does not acknowledge stays in memory, and behind it the next page of a
//! long queue is read: a consumer without prefetch that never acknowledges would get a whole backlog into
//! memory. So deliveries to a channel wait while the unacknowledged deliveries of the vhost exceed its limit, and
//! those of the channel its share. A client that acknowledges continues, regardless of others; one that does not
//! waits until it does, or until others have made room. Alarms have no influence here: a client that takes messages
//! and acknowledges them makes room.
//!
//! COMPAT: unacknowledged deliveries: a channel that has more than its share and does not acknowledge gets
//! nothing more; RabbitMQ's gets all there is.

use crate::channel::Channel;
use crate::channel_key::ChannelKey;
use crate::effect::Event;
use crate::refusal::Refusal;
use crate::vhost::Vhost;

impl Vhost {
    /// Approximate memory of unacknowledged deliveries, in bytes.
    pub fn unacked_bytes(&self) -> u64 {
        self.unacked_memory.bytes()
    }

    /// Refuses a `basic.get` on a channel that holds its share: an empty answer would be wrong, and the
    /// client may acknowledge only after an answer.
    pub(in crate::vhost) fn check_unacked_memory(&self, at: ChannelKey) -> Result<(), Refusal> {
        let channel = self.connections.channel(at);
        let has_room = |channel: &Channel| self.unacked_memory.leaves_room(channel);
        let Some(channel) = channel.filter(|channel| !has_room(channel)) else {
            return Ok(());
        };
        Err(Refusal::precondition_failed(format!(
            "{} bytes of messages are unacknowledged on channel {}, and {} in vhost '{}': acknowledge \
             some first",
            channel.unacked_bytes,
            at.channel,
            self.unacked_memory.bytes(),
            self.name
        )))
    }

    /// Lists channels whose consumers found no memory; the event is sent once per channel.
    pub(in crate::vhost) fn note_without_memory(&mut self) {
        for at in self.unacked_memory.take_found() {
            if !self.unacked_memory.list_waiting(at) {
                continue;
            }
            let channel = self.connections.known_channel_mut(at);
            if std::mem::replace(&mut channel.was_without_memory, true) {
                continue;
            }
            let unacked_bytes = channel.unacked_bytes;
            let connection = self.connections.get(at.connection).map(|known| known.name.clone());
            self.effects.event(Event::DeliveriesWait {
                connection: connection.unwrap_or_default(),
                channel: at.channel,
                unacked_bytes,
            });
        }
    }

    /// Delivers to the channels that have room now that `acknowledged` has acknowledged something.
    pub(in crate::vhost) fn resume_deliveries(&mut self, acknowledged: ChannelKey) {
        if !self.unacked_memory.has_waiting() {
            return;
        }
        let channel = |key| self.connections.channel(key);
        for at in self.unacked_memory.with_room(acknowledged, channel) {
            self.unacked_memory.stop_waiting(at);
            self.unpark_channel(at);
        }
    }

    /// Compares the counted bytes with the deliveries that channels hold; for checks.
    pub(in crate::vhost) fn check_unacked_bytes(&self, broken: &mut Vec<String>) {
        let mut sum = 0;
        for (at, channel) in self.connections.channels() {
            let bytes = channel.deliveries().map(|unacked| unacked.entry.message.memory_bytes());
            let bytes: u64 = bytes.sum();
            if bytes != channel.unacked_bytes {
                let counted = channel.unacked_bytes;
                broken.push(format!("{at:?} counts {counted} unacknowledged bytes, holds {bytes}"));
            }
            sum += bytes;
        }
        if sum != self.unacked_memory.bytes() {
            let counted = self.unacked_memory.bytes();
            broken.push(format!("{counted} unacknowledged bytes are counted, {sum} held"));
        }
    }
}
