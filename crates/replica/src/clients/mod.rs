//! The clients of a vhost, as destinations of its effects: what leaves at once, what waits for the log, what goes into it.

mod batch;
mod effects;
mod link;
#[cfg(test)]
pub(crate) mod test_client;

pub use batch::{Batch, Surroundings, Wait};
pub(crate) use link::DeferredReply;
pub use link::{ClientEnd, Link, Links};

use broker::refusal::Refusal;
use broker::time::Now;
use broker::{ConnectionId, Lsn, Vhost};

use crate::log_queue::LogQueue;
use crate::pages::PageQueue;

/// The destinations of the effects of a vhost.
#[derive(Debug)]
pub(crate) struct VhostOutputs<C> {
    /// The clients.
    pub(crate) links: Links<C>,
    /// Records that wait for the log.
    pub(crate) log: LogQueue,
    /// Tasks for the pages.
    pub(crate) pages: PageQueue,
    /// Answers that wait for the log.
    deferred: Vec<DeferredReply>,
}

impl<C: ClientEnd> VhostOutputs<C> {
    /// No clients yet, and an empty log.
    pub(crate) fn new(log: LogQueue) -> Self {
        Self { links: Links::default(), log, pages: PageQueue::default(), deferred: Vec::new() }
    }

    /// Ends a batch: sends the `replies` that have waited, and applies all effects. With a majority that has the log up to
    /// `durable`, frees what was held until then; without a cluster nothing is held.
    pub(crate) fn end_batch<S: Surroundings>(
        &mut self,
        vhost: &mut Vhost,
        replies: impl Iterator<Item = DeferredReply>,
        durable: Option<Lsn>,
        surroundings: &mut S,
    ) -> Batch {
        let mut batch = Batch::default();
        // Deferred replies first: they are older than every effect of this batch.
        for reply in replies {
            if self.links.get(reply.connection).is_none() {
                surroundings.send_internal(reply.connection, reply.outgoing);
            } else if let Some(link) = self.links.answer(&reply) {
                batch.touch(reply.connection, link);
            }
        }
        vhost.flush();
        loop {
            effects::apply(vhost, self, surroundings, &mut batch);
            if let Some(durable) = durable {
                let last = vhost.last_lsn();
                self.links.release(last, durable, &mut |connection, link, tells_core| {
                    batch.touch(connection, link);
                    if tells_core {
                        batch.asked.push(connection);
                    }
                });
            }
            if batch.asked.is_empty() {
                break;
            }
            // The report may let the core deliver more, which produces further effects.
            let now = surroundings.now();
            for connection in batch.asked.drain(..) {
                vhost.set_backlog(now, connection, self.links.backlog(connection));
            }
            if durable.is_some() {
                // The marks of held deliveries belong before the position that the deliveries wait for.
                vhost.flush();
            }
        }
        for connection in &batch.touched {
            if let Some(link) = self.links.get_mut(*connection) {
                link.is_touched = false;
            }
        }
        batch.next_wake = vhost.next_wake();
        batch.pending_bytes = self.log.bytes();
        batch.wakes_writer = self.log.wakes_writer();
        batch.wakes_pager = self.pages.wakes_pager();
        batch
    }

    /// Takes the answers that have waited for the log up to `durable`, for the next batch.
    pub(crate) fn take_durable(&mut self, durable: Lsn) -> impl Iterator<Item = DeferredReply> {
        self.deferred.extract_if(.., move |reply| reply.lsn <= durable)
    }

    /// Drops what waits, and all records: the vhost is given up, and its clients are closed because of `refusal`. Returns
    /// the clients with something new in their outboxes.
    pub(crate) fn abandon(&mut self, refusal: &Refusal) -> Vec<ConnectionId> {
        self.deferred.clear();
        self.log = LogQueue::default();
        self.pages.abandon();
        // After the closes, which are behind what is held.
        self.links.drop_held(refusal)
    }
}

/// Closes all connections of a vhost because of `refusal`. The effects are in the next batch.
pub(crate) fn close_all(vhost: &mut Vhost, now: Now, refusal: &Refusal) {
    vhost.cancel_consumers(now);
    let connections: Vec<ConnectionId> = vhost.connections().map(|(id, _)| id).collect();
    for connection in connections {
        vhost.force_close(now, connection, refusal.clone());
    }
}
