//! The log of a vhost as a plain list of records, for tests that cut or damage it, and pages that such tests
//! never use.

use broker::page::{PageRead, PageSelection, PagedMessage, PagedMeta, Pages};
use broker::time::Time;
use broker::{Effect, Envelopes, Lsn, Outgoing, PageId, Record, Replay, Vhost};

/// A record in the log: its position, its kind and its bytes.
pub(crate) type WrittenRecord = (Lsn, u8, Vec<u8>);

/// Pages that are never used.
#[derive(Debug)]
pub(crate) struct NoPages;

impl Pages for NoPages {
    fn write(&mut self, _: PageId, _: Vec<PagedMessage>) {
        panic!("a page is written");
    }

    fn meta(&mut self, _: PageId) -> Vec<PagedMeta> {
        panic!("a page is looked at");
    }

    fn read(&mut self, _: PageId, _: PageSelection) -> PageRead {
        panic!("a page is read");
    }

    fn remove(&mut self, _: PageId) {
        panic!("a page is removed");
    }
}

/// Ends a batch of a vhost: its records go to `log` and are durable. Returns the methods sent to clients.
pub(crate) fn end_batch(vhost: &mut Vhost, log: &mut Vec<WrittenRecord>) -> Vec<Outgoing> {
    vhost.durable(vhost.last_lsn());
    vhost.flush();
    let mut sent = Vec::new();
    for effect in vhost.drain_effects() {
        match effect {
            Effect::Log { lsn, at, record, .. } => {
                let mut bytes = Vec::new();
                record.encode(at, &mut bytes);
                log.push((lsn, record.kind(), bytes));
            }
            Effect::Send { outgoing, .. } | Effect::SendDurable { outgoing, .. } => {
                sent.push(outgoing);
            }
            Effect::Stalled(_)
            | Effect::AskBacklog(_)
            | Effect::Page(_)
            | Effect::AwaitGet(_)
            | Effect::Hold(_)
            | Effect::Event(_) => {}
        }
    }
    sent
}

/// Reads a log into `vhost`. Returns the replay and the position of the last record; `ended` gets the records
/// that lose a reference.
pub(crate) fn replay(
    vhost: Vhost,
    log: &[WrittenRecord],
    time: Time,
    ended: &mut Vec<Lsn>,
) -> (Replay, Lsn) {
    let mut replay = Replay::new(vhost, time);
    let mut envelopes = Envelopes::default();
    for (lsn, kind, bytes) in log {
        let decoded = Record::decode(*kind, bytes, &mut envelopes).unwrap();
        replay.apply(*lsn, decoded, false, &mut NoPages, &mut |lsn| ended.push(lsn)).unwrap();
    }
    (replay, log.last().map_or(Lsn(0), |(lsn, ..)| *lsn))
}
