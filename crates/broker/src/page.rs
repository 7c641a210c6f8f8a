//! Pages: runs of a queue's messages that are stored on disk instead of in memory.
//!
//! A long queue keeps its head and its tail in memory. The messages in between are cut into pages, of which
//! the queue keeps only a few facts: the number of messages, the first message, and the first deadline. The
//! core says what to write, read and drop (`PageTask`); the owner of the disk does so and passes the messages
//! read to `Vhost::page_read`. Pages are not records: a restart rebuilds them from the log, so they need not
//! survive.

use std::fmt;
use std::sync::Arc;

use crate::ids::{ExchangeId, Lsn, PageId, QueueId};
use crate::limits::{PAGE_BYTES, PAGE_BYTES_MIN, PAGED_DUE_MAX, PAGED_DUE_MIN};
use crate::message::Message;
use crate::record::{DecodeError, Envelopes, Reader, put_message};
use crate::time::Time;

/// Bounds on the memory of a vhost's queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Paging {
    /// Memory of waiting messages above which long queues are written to pages, in bytes.
    pub resident_bytes_max: u64,
    /// Memory of the messages of one page, in bytes; a larger message gets a page of its own.
    pub page_bytes: u64,
    /// Upper bound of messages in one page.
    pub page_messages: usize,
}

impl Paging {
    /// Writes long queues to pages above `resident_bytes_max` bytes. If that is little, pages are small,
    /// because every long queue keeps a few pages in memory.
    pub fn beyond(resident_bytes_max: u64) -> Self {
        let page_bytes = (resident_bytes_max / 512).clamp(PAGE_BYTES_MIN, PAGE_BYTES);
        let page_messages =
            usize::try_from(page_bytes / 256).expect("a page is at most PAGE_BYTES long");
        Self { resident_bytes_max, page_bytes, page_messages }
    }
}

impl Default for Paging {
    /// Keeps all messages in memory.
    fn default() -> Self {
        Self::beyond(u64::MAX)
    }
}

/// The facts about a paged message that stay in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PagedMeta {
    /// Sequence number of arrival in the queue.
    pub seq: u64,
    /// The record of the message; 0 if the message is transient.
    pub lsn: Lsn,
    /// Time of arrival in the queue.
    pub arrived: Time,
    /// Deadline from the message's own `expiration`.
    pub deadline: Option<Time>,
    /// Bytes that the message counts against the queue's limits.
    pub bytes: u64,
}

/// A message in a page.
#[derive(Clone, Debug)]
pub struct PagedMessage {
    /// The facts kept in memory.
    pub meta: PagedMeta,
    /// The message.
    pub message: Message,
}

impl PagedMessage {
    /// Appends the encoded message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_message(&self.message, out);
    }

    /// Decodes a message that was written to a page.
    ///
    /// # Errors
    /// If the bytes are not a valid message.
    pub fn decode(
        meta: PagedMeta,
        bytes: &[u8],
        envelopes: &mut Envelopes,
    ) -> Result<Self, DecodeError> {
        let message = Reader::whole_message(bytes, envelopes)?;
        Ok(Self { meta, message })
    }
}

/// The owner of the messages of a page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PageOwner {
    /// A queue, in which the messages of one priority level are ready.
    Ready {
        /// The queue.
        queue: QueueId,
        /// The priority level.
        level: u8,
    },
    /// A queue, in which the messages wait for their delivery times.
    Scheduled(QueueId),
    /// A delayed exchange, in which the messages wait for their delivery times.
    Exchange(ExchangeId),
}

/// The location of a page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PageLocation {
    /// The owner of its messages.
    pub owner: PageOwner,
    /// The page.
    pub page: PageId,
}

/// The messages that left together with their page.
#[derive(Clone, Debug)]
pub enum EndedMessages {
    /// The messages with these numbers; their records are in the page.
    Members(PageMembers),
    /// Messages whose records are known.
    Records(Arc<dyn PageRecords>),
}

impl EndedMessages {
    /// The records of the durable messages among them. `meta` reads the facts in the page.
    ///
    /// # Errors
    /// The error of `meta`.
    pub fn records<E>(
        &self,
        meta: impl FnOnce() -> Result<Vec<PagedMeta>, E>,
    ) -> Result<Vec<Lsn>, E> {
        Ok(match self {
            Self::Members(held) => {
                let left = meta()?.into_iter().filter(|meta| held.contains(meta.seq));
                left.map(|meta| meta.lsn).filter(|lsn| *lsn != Lsn(0)).collect()
            }
            Self::Records(page) => page.records(),
        })
    }
}

/// The facts about the messages of a page that its owner keeps in memory.
pub trait PageRecords: fmt::Debug + Send + Sync {
    /// The records of the durable messages that have not left the page.
    fn records(&self) -> Vec<Lsn>;
}

/// A task for the owner of the disk. The tasks of a page are done in order; those of other pages may be overtaken.
#[derive(Clone, Debug)]
pub enum PageTask {
    /// Write messages to a new page.
    Write {
        /// The id of the page.
        page: PageId,
        /// The messages, in order of arrival or of delivery time.
        messages: Vec<PagedMessage>,
    },
    /// Read messages of a page and hand them to [`Vhost::page_read`](crate::Vhost::page_read).
    Read {
        /// The location of the page.
        at: PageLocation,
        /// The messages to read.
        wanted: PageSelection,
    },
    /// Drop a page. With `ended`, these messages have left their queue together with the page: the record of
    /// each loses one reference.
    Drop {
        /// The id of the page.
        page: PageId,
        /// The messages.
        ended: Option<EndedMessages>,
    },
}

/// The messages of a page that a read asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PageSelection {
    /// All messages.
    Whole,
    /// The messages with the earliest expiration deadlines: all up to `certain`, and the first few up to `likely`.
    Due {
        /// Read all deadlines up to this time, up to a fixed number.
        certain: Time,
        /// Read no deadline after this time.
        likely: Time,
        /// Read only these messages.
        held: PageMembers,
    },
    /// One message, by its sequence number.
    Only(u64),
    /// The messages with these sequence numbers, which are in ascending order.
    Listed(Vec<u64>),
}

impl PageSelection {
    /// Selects messages of a page by their facts. Returns the indices to read, in the order of handing over,
    /// and the earliest expiration deadline of the remaining messages.
    pub fn choose(&self, meta: &[PagedMeta]) -> (Vec<usize>, Option<Time>) {
        match self {
            Self::Whole => ((0..meta.len()).collect(), None),
            Self::Only(seq) => {
                let at = meta.iter().position(|meta| meta.seq == *seq);
                (at.into_iter().collect(), None)
            }
            Self::Listed(seqs) => {
                let is_listed = |at: &usize| seqs.binary_search(&meta[*at].seq).is_ok();
                ((0..meta.len()).filter(is_listed).collect(), None)
            }
            Self::Due { certain, likely, held } => {
                let left = meta.iter().enumerate().filter(|(_, meta)| held.contains(meta.seq));
                let mut due: Vec<(Time, usize)> =
                    left.filter_map(|(at, meta)| Some((meta.deadline?, at))).collect();
                due.sort_unstable();
                let sure = due.partition_point(|(deadline, _)| deadline <= certain);
                let maybe = due.partition_point(|(deadline, _)| deadline <= likely);
                let count = sure.max(maybe.min(PAGED_DUE_MIN)).min(PAGED_DUE_MAX);
                let next = due.get(count).map(|(deadline, _)| *deadline);
                (due.iter().take(count).map(|(_, at)| *at).collect(), next)
            }
        }
    }
}

/// The result of reading a page.
#[derive(Clone, Debug)]
pub struct PageRead {
    /// The messages asked for.
    pub wanted: PageSelection,
    /// The messages read.
    pub messages: Vec<PagedMessage>,
    /// The earliest expiration deadline of the page's other messages, if the read was by deadline.
    pub next_deadline: Option<Time>,
}

/// The messages of a page that are in their queue and only there: without those that have left, and without
/// those read back individually.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PageMembers {
    first: u64,
    /// One bit for each place from the first message on; empty while the messages are consecutive.
    words: Vec<u64>,
    count: usize,
}

impl PageMembers {
    /// Creates the set from sequence numbers in ascending order.
    pub(crate) fn all(seqs: impl Iterator<Item = u64>) -> Self {
        let mut held = Self::default();
        for seq in seqs {
            if held.count == 0 {
                held.first = seq;
            }
            if held.words.is_empty() && seq != held.first + held.count as u64 {
                held.write_out();
            }
            if !held.words.is_empty() {
                held.set(seq);
            }
            held.count += 1;
        }
        held
    }

    /// Switches to one bit per place.
    fn write_out(&mut self) {
        (self.first..self.first + self.count as u64).for_each(|seq| self.set(seq));
    }

    fn set(&mut self, seq: u64) {
        let (word, bit) = self.at(seq);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= bit;
    }

    /// The number of messages.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// True if the message with this sequence number is in the set.
    pub fn contains(&self, seq: u64) -> bool {
        if self.words.is_empty() {
            return seq.checked_sub(self.first).is_some_and(|place| place < self.count as u64);
        }
        if seq < self.first {
            return false;
        }
        let (word, bit) = self.at(seq);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// The sequence numbers in the set, in ascending order.
    pub(crate) fn seqs(&self) -> impl Iterator<Item = u64> {
        let places = (64 * self.words.len()).max(self.count) as u64;
        (self.first..self.first + places).filter(|seq| self.contains(*seq))
    }

    /// True if a message with a higher sequence number is in the set.
    pub(crate) fn has_after(&self, seq: u64) -> bool {
        if seq < self.first || self.words.is_empty() {
            return self.count > 0 && seq < self.first + self.count as u64 - 1;
        }
        let (word, bit) = self.at(seq);
        let rest = self.words.get(word..).unwrap_or_default();
        let mut later = rest.iter().skip(1);
        rest.first().is_some_and(|word| word & !(bit | (bit - 1)) != 0)
            || later.any(|word| *word != 0)
    }

    /// Removes a message; true if it was in the set.
    pub(crate) fn remove(&mut self, seq: u64) -> bool {
        let was_held = self.contains(seq);
        if was_held {
            if self.words.is_empty() {
                self.write_out();
            }
            let (word, bit) = self.at(seq);
            self.words[word] &= !bit;
            self.count -= 1;
        }
        was_held
    }

    fn at(&self, seq: u64) -> (usize, u64) {
        let number = seq - self.first;
        let word = usize::try_from(number / 64).expect("a page spans PAGE_SEQS_MAX numbers");
        (word, 1 << (number % 64))
    }
}

/// Storage for pages during recovery of a vhost from its log. No client is served meanwhile, so calls may
/// block on the disk. The implementation remembers its errors.
pub trait Pages: fmt::Debug {
    /// Writes messages to a new page.
    fn write(&mut self, page: PageId, messages: Vec<PagedMessage>);

    /// The facts about the messages of a page.
    fn meta(&mut self, page: PageId) -> Vec<PagedMeta>;

    /// Reads messages of a page.
    fn read(&mut self, page: PageId, wanted: PageSelection) -> PageRead;

    /// Drops a page.
    fn remove(&mut self, page: PageId);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn page_members_are_the_set_of_added_and_not_removed(
            first in 0_u64..100,
            gaps in prop::collection::vec(prop_oneof![8 => Just(1_u64), 1 => 2_u64..200], 0..200),
            removed in prop::collection::vec(0_u64..1000, 0..20),
        ) {
            let seqs = gaps.iter().scan(first, |seq, gap| {
                let this = *seq;
                *seq += gap;
                Some(this)
            });
            let mut model: BTreeSet<u64> = seqs.clone().collect();
            let mut held = PageMembers::all(seqs);
            for seq in removed {
                prop_assert_eq!(held.remove(seq), model.remove(&seq));
            }
            prop_assert_eq!(held.count(), model.len());
            prop_assert_eq!(held.seqs().collect::<Vec<_>>(), model.iter().copied().collect::<Vec<_>>());
            for seq in 0..1200 {
                prop_assert_eq!(held.contains(seq), model.contains(&seq), "{}", seq);
                let has_after = model.range(seq + 1..).next().is_some();
                prop_assert_eq!(held.has_after(seq), has_after, "after {}", seq);
            }
        }
    }

    #[test]
    fn page_members_without_gaps_need_no_bits() {
        assert!(PageMembers::all(5..2053).words.is_empty());
    }
}
