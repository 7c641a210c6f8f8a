//! What the effects of a batch do to the world: bytes in outboxes, records for the log, work for the
//! pager, words for the log of the operator.

use broker::time::Now;
use broker::{ConnectionId, Effect, Lsn, Meaning, Message, Outgoing, Record, Vhost};
use session::transmit;
use slotmap::SecondaryMap;
use storage::{Body, Flags, NewRecord, WriteQueue};

use super::{After, Held, InternalLinks, Link, Wait};
use crate::disk::page_queue::{PageProgress, PageQueue};
use crate::limits::UNCOPIED_LOG_BODY_BYTES_MIN;

/// Turns effects into bytes in the outboxes they are for.
pub(super) fn deliver(
    vhost: &mut Vhost,
    (links, own): (&mut SecondaryMap<ConnectionId, Link>, &mut InternalLinks),
    (pending, paging, counts): (&mut WriteQueue, &mut PageQueue, &PageProgress),
    held: &mut Vec<Held>,
    after: &mut After,
) {
    let mut effects = vhost.drain_effects().peekable();
    while let Some(effect) = effects.next() {
        match effect {
            Effect::Send { connection, channel, outgoing } => {
                let Some(link) = links.get_mut(connection) else {
                    tell(own, connection, || outgoing);
                    continue;
                };
                let mut closing = matches!(outgoing, Outgoing::ConnectionClose { .. });
                link.socket.socket_writer.append(|outbox| {
                    transmit(&outgoing, channel.0, link.frame_max, outbox);
                    // One lock of the outbox for all that goes to the same connection in a row.
                    while let Some(Effect::Send { connection: next, .. }) = effects.peek()
                        && *next == connection
                    {
                        let Some(Effect::Send { channel, outgoing, .. }) = effects.next() else {
                            break;
                        };
                        closing |= matches!(outgoing, Outgoing::ConnectionClose { .. });
                        transmit(&outgoing, channel.0, link.frame_max, outbox);
                    }
                });
                if closing {
                    link.socket.socket_writer.set_closing();
                }
                after.touch(connection, link);
            }
            Effect::SendDurable { lsn, connection, channel, outgoing } => {
                held.push(Held { lsn, connection, channel, outgoing });
                after.applied.wait = Some(Wait::Log(lsn));
            }
            Effect::Stalled(connection) => {
                let Some(link) = links.get_mut(connection) else { continue };
                link.socket.socket_writer.set_stalled();
                after.touch(connection, link);
            }
            Effect::AskBacklog(connection) => after.asked.push(connection),
            Effect::Log { lsn, at, about, ended, record, is_joined } => {
                ended.iter().for_each(|lsn| {
                    pending.release(storage::Lsn(lsn.0));
                });
                let new = NewRecord {
                    lsn: storage::Lsn(lsn.0),
                    target: storage::Lsn(about.0),
                    kind: record.kind(),
                    flags: flags(record.meaning(), about),
                    references: record.references(),
                    is_joined,
                };
                append(pending, new, at, &record);
                after.applied.is_written = true;
            }
            Effect::Page(task) => {
                counts.begun(&task);
                after.applied.is_written = true;
                paging.push(task);
            }
            Effect::AwaitGet(connection) => after.applied.wait = Some(Wait::Page(connection)),
            Effect::Event(event) => after.events.push(event),
        }
    }
}

/// Appends a record to what waits for the disk; a long body is shared with its message, not copied.
fn append(pending: &mut WriteQueue, new: NewRecord, at: Now, record: &Record) {
    match record.message().filter(|message| message.body().len() >= UNCOPIED_LOG_BODY_BYTES_MIN) {
        Some(message) => {
            let body = Body::new(LongBody(message.clone()));
            pending.push_with_body(new, |octets| record.encode_without_body(at, octets), body);
        }
        None => pending.push(new, |octets| record.encode(at, octets)),
    }
}

/// A message of which the log writes the body.
struct LongBody(Message);

impl AsRef<[u8]> for LongBody {
    fn as_ref(&self) -> &[u8] {
        self.0.body()
    }
}

/// Tells a connection of the node itself something, if it is one.
pub(super) fn tell(
    own: &InternalLinks,
    connection: ConnectionId,
    outgoing: impl FnOnce() -> Outgoing,
) {
    if let Some(listener) = own.get(connection) {
        // Who listens no more has closed it, or is about to.
        let _ = listener.send(outgoing());
    }
}

/// What a record means to the log.
fn flags(meaning: Meaning, about: Lsn) -> Flags {
    let releases = if about == Lsn(0) { Flags::NONE } else { Flags::RELEASES };
    match meaning {
        Meaning::Stands => Flags::NONE,
        Meaning::Releases => releases,
        Meaning::Annotates => Flags::ANNOTATES,
        Meaning::EndsMany => Flags::ENDS_MANY,
        Meaning::ReleasesMany => releases.and(Flags::ENDS_MANY),
    }
}
