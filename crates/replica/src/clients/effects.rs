//! Effects of a batch: bytes in outboxes, records for the log, tasks for the pager, events.

use broker::{Effect, Outgoing, Vhost};
use session::transmit;

use super::VhostOutputs;
use super::batch::{Batch, Surroundings, Wait};
use super::link::{ClientEnd, DeferredReply};
use crate::log_queue::QueuedRecord;

/// Applies the effects of the core, in order.
pub(super) fn apply<C: ClientEnd, S: Surroundings>(
    vhost: &mut Vhost,
    outputs: &mut VhostOutputs<C>,
    surroundings: &mut S,
    batch: &mut Batch,
) {
    let VhostOutputs { links, log, pages, deferred } = outputs;
    let mut effects = surroundings.effects(vhost).peekable();
    while let Some(effect) = effects.next() {
        match effect {
            Effect::Send { connection, channel, outgoing } => {
                let Some(link) = links.get_mut(connection) else {
                    surroundings.send_internal(connection, outgoing);
                    continue;
                };
                if link.holding().is_some() {
                    link.append(channel, &outgoing);
                    continue;
                }
                let frame_max = link.end.frame_max();
                let mut closing = matches!(outgoing, Outgoing::ConnectionClose { .. });
                link.end.append(|outbox| {
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
                    link.end.set_closing();
                }
                batch.touch(connection, link);
            }
            Effect::SendDurable { lsn, connection, channel, outgoing } => {
                deferred.push(DeferredReply { lsn, connection, channel, outgoing });
                batch.wait = Some(Wait::Log(lsn));
            }
            Effect::Hold(connection) => links.hold(connection),
            Effect::Stalled(connection) => {
                let Some(link) = links.get_mut(connection) else { continue };
                // The writer reports when the socket has room; at once, if all that was delivered is held. With too many
                // held bytes, the core learns of room when some are released.
                if !link.holds_too_much() {
                    link.end.set_stalled();
                    batch.touch(connection, link);
                }
            }
            Effect::AskBacklog(connection) => batch.asked.push(connection),
            Effect::Log { lsn, at, about, ended, record, is_joined } => {
                // References end first, because the log attributes them to the next record.
                ended.iter().for_each(|lsn| log.release(*lsn));
                log.append(QueuedRecord { lsn, at, about, is_joined, record: &record });
                batch.is_written = true;
            }
            Effect::Page(task) => {
                surroundings.page_task(&task);
                pages.push(task);
                batch.is_written = true;
            }
            Effect::AwaitGet(connection) => batch.wait = Some(Wait::Page(connection)),
            Effect::Event(event) => batch.events.push(event),
        }
    }
}
