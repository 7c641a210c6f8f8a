//! A small model of the broker: messages with copies in several queues, of which each copy
//! comes, is spoken of, moves on and goes.
//!
//! A [`Book`] is the state that the records so far give; the same book comes out of what a log hands
//! back, with any omission in between.

use std::collections::BTreeMap;

use storage::{Body, Flags, Lsn, NewRecord, Record, References, WriteQueue};

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

/// Bodies at least this long are shared with the log, in bytes.
const UNCOPIED_BYTES_MIN: usize = 400;

/// A copy of a message: the record that made it, and the queue it is in.
pub(crate) type Copy = (Lsn, u8);

/// The copies there are, with what their message says and how often each was returned.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Book {
    pub(crate) copies: BTreeMap<Copy, (Vec<u8>, u64)>,
}

impl Book {
    fn enter(&mut self, lsn: Lsn, queues: &[u8], body: &[u8]) {
        for queue in queues {
            self.copies.insert((lsn, *queue), (body.to_vec(), 0));
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
            SETTLE => {
                self.copies.remove(&(record.target, payload[0]));
            }
            MOVE => {
                self.copies.remove(&(record.target, payload[0]));
                if !record.flags.has(Flags::SPENT) {
                    let (queues, body) = queues(&payload[8..]);
                    self.enter(record.lsn, queues, body);
                }
            }
            RETURN => {
                if let Some(copy) = self.copies.get_mut(&(record.target, payload[0])) {
                    copy.1 = u64::from_le_bytes(payload[8..16].try_into().unwrap());
                }
            }
            PURGE => {
                for copy in self.copies_in(payload[0]) {
                    self.copies.remove(&copy);
                    references.release(copy.0);
                }
            }
            other => panic!("no record is of kind {other}"),
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
            out.push(record, |bytes| write(bytes, 0, queues, body));
        } else {
            let shared = Body::new(body.to_vec());
            out.push_with_body(record, |bytes| write(bytes, 0, queues, &[]), shared);
        }
    }

    pub(crate) fn settle(&mut self, lsn: Lsn, copy: Copy, out: &mut WriteQueue) {
        self.copies.remove(&copy).unwrap();
        out.push(record(lsn, copy.0, SETTLE, Flags::RELEASES, 0), |bytes| bytes.push(copy.1));
    }

    pub(crate) fn move_to(&mut self, lsn: Lsn, copy: Copy, queues: &[u8], out: &mut WriteQueue) {
        let (body, _) = self.copies.remove(&copy).unwrap();
        self.enter(lsn, queues, &body);
        let references = u16::try_from(queues.len()).unwrap();
        let record = record(lsn, copy.0, MOVE, Flags::RELEASES, references);
        if body.len() < UNCOPIED_BYTES_MIN {
            out.push(record, |bytes| write(bytes, copy.1, queues, &body));
        } else {
            let shared = Body::new(body);
            out.push_with_body(record, |bytes| write(bytes, copy.1, queues, &[]), shared);
        }
    }

    pub(crate) fn take_back(&mut self, lsn: Lsn, copy: Copy, out: &mut WriteQueue) {
        let times = &mut self.copies.get_mut(&copy).unwrap().1;
        *times += 1;
        let times = *times;
        out.push(record(lsn, copy.0, RETURN, Flags::ANNOTATES, 0), |bytes| {
            bytes.extend([copy.1, 0, 0, 0, 0, 0, 0, 0]);
            bytes.extend(times.to_le_bytes());
        });
    }

    pub(crate) fn purge(&mut self, lsn: Lsn, queue: u8, out: &mut WriteQueue) {
        for copy in self.copies_in(queue) {
            self.copies.remove(&copy);
            out.release(copy.0);
        }
        out.push(record(lsn, Lsn(0), PURGE, Flags::ENDS_MANY, 0), |bytes| bytes.push(queue));
    }
}

fn record(lsn: Lsn, target: Lsn, kind: u8, flags: Flags, references: u16) -> NewRecord {
    NewRecord { lsn, target, kind, flags, references, is_joined: false }
}

/// The queue a copy leaves, then the queues it enters, then the body.
fn write(bytes: &mut Vec<u8>, left: u8, queues: &[u8], body: &[u8]) {
    bytes.extend([left, 0, 0, 0, 0, 0, 0, 0]);
    bytes.push(u8::try_from(queues.len()).unwrap());
    bytes.extend(queues);
    bytes.extend(body);
}

fn queues(bytes: &[u8]) -> (&[u8], &[u8]) {
    bytes[1..].split_at(usize::from(bytes[0]))
}
