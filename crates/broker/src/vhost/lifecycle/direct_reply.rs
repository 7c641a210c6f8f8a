//! Direct reply-to: a reply goes straight to the requester's channel, without a queue.

use std::sync::Arc;

use crate::channel_key::ChannelKey;
use crate::delivery::Delivery;
use crate::effect::{Effect, Outgoing};
use crate::limits::{OUTBOX_BYTES_MAX, REPLY_BACKLOG_BYTES_MAX};
use crate::message::Message;
use crate::vhost::Vhost;

impl Vhost {
    /// Delivers a reply to a requester; a reply is dropped if the requester is gone or does not read.
    ///
    /// COMPAT: direct reply-to: a requester that does not read loses replies; they have no queue to wait in.
    pub(in crate::vhost) fn deliver_reply(&mut self, to: ChannelKey, message: &Message) {
        if !self.try_deliver_reply(to, message) {
            self.counters.direct_replies_dropped += 1;
        } else if self.firehose.is_on() {
            self.trace_reply(to, message);
        }
    }

    fn try_deliver_reply(&mut self, to: ChannelKey, message: &Message) -> bool {
        // A transaction may hold the key of a channel that is gone.
        let Some((backlog, channel)) = self.connections.delivery_ends(to) else {
            return false;
        };
        let Some(consumer) = &channel.reply_consumer else {
            return false;
        };
        if backlog.bytes >= REPLY_BACKLOG_BYTES_MAX {
            return false;
        }
        let consumer_tag = Arc::clone(&consumer.tag);
        let tag = channel.next_tag();
        channel.counters.deliveries.count(true, false, false);
        self.counters.direct_replies += 1;
        backlog.bytes += message.delivery_bytes();
        let asks = backlog.bytes >= OUTBOX_BYTES_MAX && !backlog.asked;
        backlog.asked |= asks;
        let delivery = Delivery { tag, redelivered: false, counts: None, message: message.clone() };
        self.effects.send(to, Outgoing::Deliver { consumer_tag, delivery });
        if asks {
            // After the reply, so that the shell counts it, too.
            self.effects.push(Effect::AskBacklog(to.connection));
        }
        true
    }
}
