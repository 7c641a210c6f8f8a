//! Effects of a batch: bytes in outboxes, records for the log, tasks for the pager, log lines.

use broker::{ConnectionId, Effect, Event, Lsn, Outgoing, Vhost};
use session::transmit;
use smallvec::SmallVec;
use vhost_log::{LogQueue, QueuedRecord};

use super::links::{DeferredReply, Link, Links};
use crate::disk::page_queue::{PageProgress, PageQueue};

/// The event that the answer to a command waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    /// The log is durable up to this position.
    Log(Lsn),
    /// A page was read, for a `basic.get` of this connection.
    Page(ConnectionId),
}

/// Result of a batch of commands.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct BatchResult {
    /// The event that the answer to the last command waits for. Until then, no command of the connection may
    /// be applied.
    pub(crate) wait: Option<Wait>,
    /// True if the batch has produced work for the disk.
    pub(crate) is_written: bool,
    /// True if the batch was much work, so that others have a turn before the next one of the connection.
    pub(crate) is_much: bool,
}

/// Effects that are handled after all others are in the outboxes.
#[derive(Default, Debug)]
pub(super) struct BatchEffects {
    /// Connections with something new in their outboxes, each once.
    pub(super) touched: SmallVec<[ConnectionId; 4]>,
    pub(super) events: Vec<Event>,
    /// Connections for which the core wants the number of unsent bytes.
    pub(super) asked: Vec<ConnectionId>,
    pub(super) result: BatchResult,
}

impl BatchEffects {
    pub(super) fn touch(&mut self, connection: ConnectionId, link: &mut Link) {
        if !std::mem::replace(&mut link.is_touched, true) {
            self.touched.push(connection);
        }
    }
}

/// The destinations of a vhost's effects, behind its lock.
#[derive(Default, Debug)]
pub(super) struct Outputs {
    pub(super) links: Links,
    pub(super) log: LogQueue,
    pub(super) pages: PageQueue,
    /// Answers that wait for the log.
    pub(super) deferred: Vec<DeferredReply>,
}

/// Applies the effects of the core, in order.
pub(super) fn apply_effects(
    vhost: &mut Vhost,
    outputs: &mut Outputs,
    page_progress: &PageProgress,
    batch: &mut BatchEffects,
) {
    let Outputs { links, log, pages, deferred } = outputs;
    let mut effects = vhost.drain_effects().peekable();
    while let Some(effect) = effects.next() {
        match effect {
            Effect::Send { connection, channel, outgoing } => {
                let Some(link) = links.clients.get_mut(connection) else {
                    links.send_internal(connection, || outgoing);
                    continue;
                };
                if link.holding().is_some() {
                    link.append(channel, &outgoing);
                    continue;
                }
                let frame_max = link.frame_max;
                let mut closing = matches!(outgoing, Outgoing::ConnectionClose { .. });
                link.socket.writer.append(|outbox| {
                    transmit(&outgoing, channel.0, frame_max, outbox);
                    // One lock of the outbox for consecutive effects of the same connection.
                    while let Some(Effect::Send { connection: next, .. }) = effects.peek()
                        && *next == connection
                    {
                        let Some(Effect::Send { channel, outgoing, .. }) = effects.next() else {
                            unreachable!("the effect that was peeked at comes next");
                        };
                        closing |= matches!(outgoing, Outgoing::ConnectionClose { .. });
                        transmit(&outgoing, channel.0, frame_max, outbox);
                    }
                });
                // After the bytes, because the reader may end the connection as soon as it is notified.
                if closing {
                    link.socket.writer.set_closing();
                }
                batch.touch(connection, link);
            }
            Effect::SendDurable { lsn, connection, channel, outgoing } => {
                deferred.push(DeferredReply { lsn, connection, channel, outgoing });
                batch.result.wait = Some(Wait::Log(lsn));
            }
            Effect::Hold(connection) => links.hold(connection),
            Effect::Stalled(connection) => {
                let Some(link) = links.clients.get_mut(connection) else { continue };
                // The writer reports when the socket has room; at once, if all that was delivered is held. With too many
                // held bytes, the core learns of room when some are released.
                if !link.holds_too_much() {
                    link.socket.writer.set_stalled();
                    batch.touch(connection, link);
                }
            }
            Effect::AskBacklog(connection) => batch.asked.push(connection),
            Effect::Log { lsn, at, about, ended, record, is_joined } => {
                // References end first, because the log attributes them to the next record.
                ended.iter().for_each(|lsn| log.release(*lsn));
                log.append(QueuedRecord { lsn, at, about, is_joined, record: &record });
                batch.result.is_written = true;
            }
            Effect::Page(task) => {
                page_progress.begun(&task);
                pages.push(task);
                batch.result.is_written = true;
            }
            Effect::AwaitGet(connection) => batch.result.wait = Some(Wait::Page(connection)),
            Effect::Event(event) => batch.events.push(event),
        }
    }
}
