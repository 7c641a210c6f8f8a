//! The effects that the shell has not taken yet, in order.

use crate::channel_key::ChannelKey;
use crate::effect::{Effect, Event, Outgoing};
use crate::ids::Lsn;
use crate::limits::EFFECTS_KEPT_MAX;
use crate::page::PageTask;

/// Effects that the shell has not taken yet.
#[derive(Default, Debug)]
pub(crate) struct Effects(Vec<Effect>);

impl Effects {
    /// Adds an effect.
    #[inline]
    pub(crate) fn push(&mut self, effect: Effect) {
        self.0.push(effect);
    }

    /// Sends a method to a client.
    #[inline]
    pub(crate) fn send(&mut self, to: ChannelKey, outgoing: Outgoing) {
        let ChannelKey { connection, channel } = to;
        self.0.push(Effect::Send { connection, channel, outgoing });
    }

    /// Sends a method to a client once the log is durable up to `lsn`.
    #[inline]
    pub(crate) fn send_durable(&mut self, lsn: Lsn, to: ChannelKey, outgoing: Outgoing) {
        let ChannelKey { connection, channel } = to;
        self.0.push(Effect::SendDurable { lsn, connection, channel, outgoing });
    }

    /// Reports an event to the operator.
    #[inline]
    pub(crate) fn event(&mut self, event: Event) {
        self.0.push(Effect::Event(event));
    }

    /// Requests writing, reading or dropping a page.
    #[inline]
    pub(crate) fn page(&mut self, task: PageTask) {
        self.0.push(Effect::Page(task));
    }

    /// Takes all effects, in order.
    #[inline]
    pub(crate) fn drain(&mut self) -> std::vec::Drain<'_, Effect> {
        self.0.drain(..)
    }

    /// Frees the memory of a burst of effects after the shell has taken them.
    #[inline]
    pub(crate) fn shrink(&mut self) {
        if self.0.is_empty() && self.0.capacity() > EFFECTS_KEPT_MAX {
            self.0 = Vec::new();
        }
    }
}
