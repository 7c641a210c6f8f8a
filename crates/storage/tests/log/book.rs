//! A small model of the broker: messages with copies in several queues, of which each copy
//! comes, is spoken of, moves on and goes.
//!
//! A [`Book`] is the state that the records so far give; the same book comes out of what a log hands
//! back, with any omission in between.

use std::collections::BTreeMap;

use storage::{
    Body, FORMAT_VERSION, FORMAT_VERSION_OLDEST, Flags, Lsn, NewRecord, Record, References,
    WriteQueue,
};

/// Messages: these queues get a copy each.
pub(crate) const PUBLISH: u8 = 1;
/// A copy is gone.
pub(crate) const SETTLE: u8 = 2;
/// A copy is gone from one queue, and copies of it are in others.
pub(crate) const MOVE: u8 = 3;
/// A copy was returned so often.
pub(crate) const RETURN: u8 = 4;
/// Every copy in a queue is gone.
pub(crate) const PURGE: u8 = 5;
/// A copy has another place in its queue, by which later records call it.
pub(crate) const ADVANCE: u8 = 6;
/// A queue is declared.
pub(crate) const DECLARE: u8 = 7;
/// A queue is not declared any more, and every copy in it is gone.
pub(crate) const DELETE: u8 = 8;

/// Bodies at least this long are shared with the log, in bytes.
const UNCOPIED_BYTES_MIN: usize = 400;

/// A copy of a message: the record that made it, and the queue it is in.
pub(crate) type Copy = (Lsn, u8);

/// The copies there are.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Book {
    /// The queues that are declared, which copies do not need, with the records that say so.
    declared: BTreeMap<u8, Lsn>,
    pub(crate) copies: BTreeMap<Copy, CopyState>,
}

/// The body of a message, the number of returns of a copy, and the place of the copy in its queue.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct CopyState {
    pub(crate) body: Vec<u8>,
    pub(crate) returns: u64,
    place: u64,
}

impl Book {
    fn enter(&mut self, lsn: Lsn, queues: &[u8], body: &[u8]) {
        for queue in queues {
            let state = CopyState { body: body.to_vec(), returns: 0, place: 0 };
            self.copies.insert((lsn, *queue), state);
        }
    }

    /// Takes in a record that was read back.
    pub(crate) fn read(&mut self, record: Record<'_>, references: &mut References<'_>) {
        let payload = record.payload;
        match record.kind {
            PUBLISH => {
                let (queues, body) = queues(&payload[8..]);
                self.enter(record.lsn, queues, body);
            }
            // The settlements of the oldest fixtures name no place.
            SETTLE => self.end((record.target, payload[0]), payload.get(8..).map_or(0, number)),
            MOVE => {
                self.end((record.target, payload[0]), u64::from(payload[1]));
                if !record.flags.has(Flags::SPENT) {
                    let (queues, body) = queues(&payload[8..]);
                    self.enter(record.lsn, queues, body);
                }
            }
            RETURN => {
                if let Some(copy) = self.copies.get_mut(&(record.target, payload[0])) {
                    copy.returns = number(&payload[8..]);
                }
            }
            ADVANCE => {
                if let Some(copy) = self.copies.get_mut(&(record.target, payload[0])) {
                    copy.place = number(&payload[8..]);
                }
            }
            PURGE => self.empty(payload[0], &mut |lsn| references.release(lsn)),
            DECLARE => {
                self.declared.insert(payload[0], record.lsn);
            }
            DELETE => {
                self.declared.retain(|_, declared| *declared != record.target);
                self.empty(payload[0], &mut |lsn| references.release(lsn));
            }
            other => panic!("no record is of kind {other}"),
        }
    }

    /// Ends all copies in a queue.
    fn empty(&mut self, queue: u8, release: &mut dyn FnMut(Lsn)) {
        for copy in self.copies_in(queue) {
            self.copies.remove(&copy);
            release(copy.0);
        }
    }

    /// Ends a copy, if it is in this place.
    fn end(&mut self, copy: Copy, place: u64) {
        if self.copies.get(&copy).is_some_and(|state| state.place == place) {
            self.copies.remove(&copy);
        }
    }

    pub(crate) fn copies_in(&self, queue: u8) -> Vec<Copy> {
        self.copies.keys().filter(|(_, at)| *at == queue).copied().collect()
    }

    pub(crate) fn publish(&mut self, lsn: Lsn, queues: &[u8], body: &[u8], out: &mut WriteQueue) {
        self.enter(lsn, queues, body);
        let references = u16::try_from(queues.len()).unwrap();
        let record = record(lsn, Lsn(0), PUBLISH, Flags::NONE, references);
        if body.len() < UNCOPIED_BYTES_MIN {
            out.push(record, |bytes| write(bytes, (0, 0), queues, body));
        } else {
            let shared = Body::new(body.to_vec());
            out.push_with_body(record, |bytes| write(bytes, (0, 0), queues, &[]), shared);
        }
    }

    pub(crate) fn settle(&mut self, lsn: Lsn, copy: Copy, out: &mut WriteQueue) {
        let state = self.copies.remove(&copy).unwrap();
        out.push(record(lsn, copy.0, SETTLE, Flags::RELEASES, 0), |bytes| {
            write_number(bytes, copy.1, state.place);
        });
    }

    pub(crate) fn move_to(&mut self, lsn: Lsn, copy: Copy, queues: &[u8], out: &mut WriteQueue) {
        let CopyState { body, place, .. } = self.copies.remove(&copy).unwrap();
        let left = (copy.1, place);
        self.enter(lsn, queues, &body);
        let references = u16::try_from(queues.len()).unwrap();
        let record = record(lsn, copy.0, MOVE, Flags::RELEASES, references);
        if body.len() < UNCOPIED_BYTES_MIN {
            out.push(record, |bytes| write(bytes, left, queues, &body));
        } else {
            let shared = Body::new(body);
            out.push_with_body(record, |bytes| write(bytes, left, queues, &[]), shared);
        }
    }

    pub(crate) fn take_back(&mut self, lsn: Lsn, copy: Copy, out: &mut WriteQueue) {
        let state = self.copies.get_mut(&copy).unwrap();
        state.returns += 1;
        out.push(record(lsn, copy.0, RETURN, Flags::ANNOTATES, 0), |bytes| {
            write_number(bytes, copy.1, state.returns);
        });
    }

    pub(crate) fn advance(&mut self, lsn: Lsn, copy: Copy, out: &mut WriteQueue) {
        let state = self.copies.get_mut(&copy).unwrap();
        state.place += 1;
        out.push(record(lsn, copy.0, ADVANCE, Flags::ANNOTATES, 0), |bytes| {
            write_number(bytes, copy.1, state.place);
        });
    }

    pub(crate) fn purge(&mut self, lsn: Lsn, queue: u8, out: &mut WriteQueue) {
        self.empty(queue, &mut |lsn| {
            out.release(lsn);
        });
        out.push(record(lsn, Lsn(0), PURGE, Flags::ENDS_MANY, 0), |bytes| bytes.push(queue));
    }

    /// Deletes a queue that is declared, or declares it.
    pub(crate) fn delete_or_declare(&mut self, lsn: Lsn, queue: u8, out: &mut WriteQueue) {
        let Some(declared) = self.declared.remove(&queue) else {
            self.declared.insert(queue, lsn);
            return out
                .push(record(lsn, Lsn(0), DECLARE, Flags::NONE, 1), |bytes| bytes.push(queue));
        };
        self.empty(queue, &mut |lsn| {
            out.release(lsn);
        });
        let flags = Flags::RELEASES.and(Flags::ENDS_MANY);
        out.push(record(lsn, declared, DELETE, flags, 0), |bytes| bytes.push(queue));
    }
}

/// The oldest version of the log's format whose builds know records of this kind.
pub(crate) fn format_version(kind: u8) -> u32 {
    if kind == ADVANCE { FORMAT_VERSION } else { FORMAT_VERSION_OLDEST }
}

fn record(lsn: Lsn, target: Lsn, kind: u8, flags: Flags, references: u16) -> NewRecord {
    let format_version = format_version(kind);
    NewRecord { lsn, target, kind, flags, references, format_version, is_joined: false }
}

/// A queue and a number.
fn write_number(bytes: &mut Vec<u8>, queue: u8, number: u64) {
    bytes.extend([queue, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend(number.to_le_bytes());
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().unwrap())
}

/// The queue and the place a copy leaves, then the queues it enters, then the body.
fn write(bytes: &mut Vec<u8>, left: (u8, u64), queues: &[u8], body: &[u8]) {
    bytes.extend([left.0, u8::try_from(left.1).unwrap(), 0, 0, 0, 0, 0, 0]);
    bytes.push(u8::try_from(queues.len()).unwrap());
    bytes.extend(queues);
    bytes.extend(body);
}

fn queues(bytes: &[u8]) -> (&[u8], &[u8]) {
    bytes[1..].split_at(usize::from(bytes[0]))
}
