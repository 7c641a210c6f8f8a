//! The effects that the shell has not taken yet, in order.

use crate::channel_key::ChannelKey;
use crate::effect::{Effect, Event, Outgoing};
use crate::ids::{ConnectionId, Lsn};
use crate::limits::EFFECTS_KEPT_MAX;
use crate::page::PageTask;
use crate::record::Record;

/// Effects that the shell has not taken yet.
#[derive(Default, Debug)]
pub(crate) struct Effects {
    effects: Vec<Effect>,
    /// Number of effects whose records are in the sums of a replicated vhost.
    summed: usize,
    /// The connection that was held last since the shell took the effects.
    held: Option<ConnectionId>,
}

impl Effects {
    /// Adds an effect.
    #[inline]
    pub(crate) fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Sends a method to a client.
    #[inline]
    pub(crate) fn send(&mut self, to: ChannelKey, outgoing: Outgoing) {
        let ChannelKey { connection, channel } = to;
        self.effects.push(Effect::Send { connection, channel, outgoing });
    }

    /// Sends a method to a client once the log is durable up to `lsn`.
    #[inline]
    pub(crate) fn send_durable(&mut self, lsn: Lsn, to: ChannelKey, outgoing: Outgoing) {
        let ChannelKey { connection, channel } = to;
        self.effects.push(Effect::SendDurable { lsn, connection, channel, outgoing });
    }

    /// Holds what follows for a connection until the log is durable up to the end of the batch.
    pub(crate) fn hold(&mut self, connection: ConnectionId) {
        if self.held.replace(connection) != Some(connection) {
            self.effects.push(Effect::Hold(connection));
        }
    }

    /// Calls `each` with the records that were appended since the last call.
    pub(crate) fn sum_records(&mut self, mut each: impl FnMut(Lsn, &Record)) {
        for effect in self.effects.iter().skip(self.summed) {
            if let Effect::Log { lsn, record, .. } = effect {
                each(*lsn, record);
            }
        }
        self.summed = self.effects.len();
    }

    /// Records that [`Effects::sum_records`] has not called `each` with; for checks.
    pub(crate) fn unsummed(&self) -> impl Iterator<Item = (Lsn, &Record)> {
        self.effects.iter().skip(self.summed).filter_map(|effect| {
            let Effect::Log { lsn, record, .. } = effect else { return None };
            Some((*lsn, record))
        })
    }

    /// The shell takes all effects of a replicated vhost now.
    pub(crate) fn batch_taken(&mut self) {
        self.summed = 0;
        self.held = None;
    }

    /// Reports an event to the operator.
    #[inline]
    pub(crate) fn event(&mut self, event: Event) {
        self.effects.push(Effect::Event(event));
    }

    /// Requests writing, reading or dropping a page.
    #[inline]
    pub(crate) fn page(&mut self, task: PageTask) {
        self.effects.push(Effect::Page(task));
    }

    /// Takes all effects, in order.
    #[inline]
    pub(crate) fn drain(&mut self) -> std::vec::Drain<'_, Effect> {
        self.effects.drain(..)
    }

    /// Frees the memory of a burst of effects after the shell has taken them.
    #[inline]
    pub(crate) fn shrink(&mut self) {
        if self.effects.is_empty() && self.effects.capacity() > EFFECTS_KEPT_MAX {
            self.effects = Vec::new();
        }
    }
}
