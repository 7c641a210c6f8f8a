//! Messages with entries: cut into parts, and read when they are whole.

use bytes::{Bytes, BytesMut};
use storage::{EntryContent, EntryIndex, EntryRecords, LogEntry, Lsn, Term};

use super::control::{clock, put_clock};
use super::error::FrameError;
use super::fields::Fields;
use super::header::{FRAME_HEADER_BYTES, FrameHeader, FrameKind};
use super::message::{Append, Body, Message};
use super::parts::PART_HEADER_BYTES;
use super::{Frame, FrameClass};
use crate::limits::{
    ENTRIES_PER_MESSAGE_MAX, FRAME_BYTES_MAX, GATHERED_BYTES_MAX, MEMBERSHIP_BYTES_MAX,
};

const RECORDS: u8 = 0;
const EMPTY: u8 = 1;
const MEMBERSHIP: u8 = 2;

/// Octets of an entry in front of its content.
const ENTRY_HEADER_BYTES: usize = 52;

/// Octets of payload in a part.
const PART_BYTES: usize = FRAME_BYTES_MAX - FRAME_HEADER_BYTES - PART_HEADER_BYTES;

/// Cuts a message into frames. `header` gives cluster, group, sender and receiver; `number` is the message's, above
/// those of all earlier ones to this member.
pub(crate) fn encode_append(
    header: FrameHeader,
    number: u64,
    term: u64,
    append: &Append,
    out: &mut Vec<Frame>,
) {
    let total = message_bytes(append);
    let mut cutter = Cutter { header, number, total, sent: 0, gathered: BytesMut::new(), out };
    let fields = &mut cutter.gathered;
    for number in [term, append.previous, append.previous_term, append.commit] {
        fields.extend_from_slice(&number.to_le_bytes());
    }
    put_clock(fields, append.clock.as_ref());
    fields.extend_from_slice(&in_32_bits(append.entries.len()).to_le_bytes());
    for entry in &append.entries {
        cutter.push_entry(entry);
    }
    cutter.flush(Bytes::new());
}

fn in_32_bits(number: usize) -> u32 {
    u32::try_from(number).expect("an entry is below 4 GiB")
}

/// Octets of the content of an entry.
fn content(entry: &LogEntry) -> Bytes {
    match &entry.content {
        EntryContent::Records(records) => records.bytes.clone(),
        EntryContent::Empty => Bytes::new(),
        EntryContent::Membership(change) => change.clone(),
    }
}

fn message_bytes(append: &Append) -> u32 {
    let entries = append.entries.iter().map(|entry| ENTRY_HEADER_BYTES + content(entry).len());
    in_32_bits(4 * 8 + 33 + 4 + entries.sum::<usize>())
}

/// Cuts the octets of a message.
struct Cutter<'a> {
    header: FrameHeader,
    number: u64,
    total: u32,
    /// Octets in earlier frames.
    sent: u32,
    /// Octets that wait for the next frame.
    gathered: BytesMut,
    out: &'a mut Vec<Frame>,
}

impl Cutter<'_> {
    fn push_entry(&mut self, entry: &LogEntry) {
        let (kind, first, last, count) = match &entry.content {
            EntryContent::Records(EntryRecords { first, last, count, .. }) => {
                (RECORDS, first.0, last.0, *count)
            }
            EntryContent::Empty => (EMPTY, 0, 0, 0),
            EntryContent::Membership(_) => (MEMBERSHIP, 0, 0, 0),
        };
        let content = content(entry);
        if self.gathered.len() + ENTRY_HEADER_BYTES > PART_BYTES {
            self.flush(Bytes::new());
        }
        let fields = &mut self.gathered;
        for number in [entry.index.0, entry.term.0, entry.axis_us, first, last] {
            fields.extend_from_slice(&number.to_le_bytes());
        }
        fields.extend_from_slice(&count.to_le_bytes());
        fields.extend_from_slice(&in_32_bits(content.len()).to_le_bytes());
        fields.extend_from_slice(&[kind, 0, 0, 0]);
        let mut rest = content;
        while !rest.is_empty() {
            let room = PART_BYTES - self.gathered.len();
            if rest.len() <= GATHERED_BYTES_MAX.min(room) {
                self.gathered.extend_from_slice(&rest);
                break;
            }
            let tail = rest.split_to(rest.len().min(room));
            self.flush(tail);
        }
    }

    /// Sends what was gathered, and `tail` behind it.
    fn flush(&mut self, tail: Bytes) {
        let bytes = in_32_bits(self.gathered.len() + tail.len());
        if bytes == 0 {
            return;
        }
        let mut head =
            BytesMut::with_capacity(FRAME_HEADER_BYTES + PART_HEADER_BYTES + self.gathered.len());
        head.resize(FRAME_HEADER_BYTES, 0);
        head.extend_from_slice(&self.number.to_le_bytes());
        head.extend_from_slice(&self.sent.to_le_bytes());
        head.extend_from_slice(&self.total.to_le_bytes());
        head.extend_from_slice(&self.gathered);
        let bare = in_32_bits(tail.len());
        let length = in_32_bits(PART_HEADER_BYTES) + bytes;
        let header = FrameHeader { kind: FrameKind::Part, length, bare, ..self.header };
        let (front, covered) = head.split_at_mut(FRAME_HEADER_BYTES);
        front.copy_from_slice(&header.encode(covered));
        self.sent += bytes;
        self.gathered.clear();
        let class = FrameClass::Entries;
        self.out.push(Frame { to: header.to, class, head: head.freeze(), tail });
    }
}

/// Reads a whole message. Entries share its octets.
///
/// # Errors
/// [`FrameError`]: it contradicts itself. The octets of records are not checked here.
pub(crate) fn decode_append(message: &Bytes) -> Result<Message, FrameError> {
    let mut fields = Fields::new(message);
    let term = fields.number()?;
    let (previous, previous_term) = (fields.number()?, fields.number()?);
    let commit = fields.number()?;
    let clock = clock(&mut fields)?;
    let count = fields.u32()? as usize;
    if count > ENTRIES_PER_MESSAGE_MAX || count > fields.len() / ENTRY_HEADER_BYTES {
        return Err(FrameError::Malformed("more entries than octets"));
    }
    let mut entries = Vec::with_capacity(count);
    let mut before = (previous, previous_term);
    for _ in 0..count {
        let entry = decode_entry(&mut fields, message)?;
        let LogEntry { index, term: entry_term, .. } = entry;
        if index.0 != before.0 + 1 || entry_term.0 < before.1 || entry_term.0 > term {
            return Err(FrameError::Impossible("entries out of order"));
        }
        before = (index.0, entry_term.0);
        entries.push(entry);
    }
    fields.end()?;
    if term == 0 || previous_term > term {
        return Err(FrameError::Malformed("term out of range"));
    }
    Ok(Message {
        term,
        body: Body::Append(Append { previous, previous_term, commit, clock, entries }),
    })
}

fn decode_entry(fields: &mut Fields<'_>, message: &Bytes) -> Result<LogEntry, FrameError> {
    let (index, term) = (EntryIndex(fields.number()?), Term(fields.number()?));
    let axis_us = fields.number()?;
    let (first, last) = (Lsn(fields.number()?), Lsn(fields.number()?));
    let (count, length) = (fields.u32()?, fields.u32()? as usize);
    let kind = fields.u8()?;
    if fields.bytes()? != [0; 3] {
        return Err(FrameError::Malformed("unknown flags of an entry"));
    }
    let start = message.len() - fields.len();
    fields.skip(length)?;
    let bytes = message.slice(start..start + length);
    let is_plain = (first, last, count) == (Lsn(0), Lsn(0), 0);
    let content = match kind {
        RECORDS => EntryContent::Records(EntryRecords { first, last, count, bytes }),
        EMPTY if is_plain && length == 0 => EntryContent::Empty,
        // A copy, so that a few octets do not keep a whole message.
        MEMBERSHIP if is_plain && length <= MEMBERSHIP_BYTES_MAX => {
            EntryContent::Membership(Bytes::copy_from_slice(&bytes))
        }
        EMPTY | MEMBERSHIP => return Err(FrameError::Malformed("content of an entry")),
        _ => return Err(FrameError::Malformed("unknown kind of an entry")),
    };
    Ok(LogEntry { index, term, axis_us, content })
}
