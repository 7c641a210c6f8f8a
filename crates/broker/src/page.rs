//! Pages: messages of a queue that wait on disk instead of in memory, put aside together.
//!
//! A long queue keeps its head and its tail; what stands between them is cut into pages, of which only
//! a few facts stay: how many messages, which is the first, when the first of them expires. The core
//! says what is to be written, read and forgotten (`PageTask`), whoever has the disk does it in that
//! order and hands over what was read (`Vhost::page_read`). Pages are no records: a restart makes
//! them anew from the log, so nothing of them needs to survive.

use crate::ids::{Lsn, PageId, QueueId};
use crate::limits::{PAGE_BYTES, PAGE_BYTES_MIN, PAGED_DUE_MAX, PAGED_DUE_MIN};
use crate::message::Message;
use crate::record::{DecodeError, Envelopes, Reader, put_message};
use crate::time::Time;

/// How much of its queues a vhost keeps in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Paging {
    /// Memory of waiting messages from which on long queues are put aside, in bytes.
    pub resident_bytes_max: u64,
    /// Memory of the messages of one page, in bytes; a larger message has a page of its own.
    pub page_bytes: u64,
    /// Messages of one page.
    pub page_messages: usize,
}

impl Paging {
    /// Puts long queues aside from so many bytes on; where that is little, in small pages, because
    /// every long queue keeps a few in memory.
    pub fn beyond(resident_bytes_max: u64) -> Self {
        let page_bytes = (resident_bytes_max / 512).clamp(PAGE_BYTES_MIN, PAGE_BYTES);
        let page_messages = usize::try_from(page_bytes / 256).unwrap_or(usize::MAX);
        Self { resident_bytes_max, page_bytes, page_messages }
    }
}

impl Default for Paging {
    /// Everything stays in memory.
    fn default() -> Self {
        Self::beyond(u64::MAX)
    }
}

/// What is known of a message in a page without reading it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PagedFacts {
    /// Its place in the order of arrival in its queue.
    pub seq: u64,
    /// The record that brought it; 0 if it does not outlive a restart.
    pub lsn: Lsn,
    /// When it arrived in its queue.
    pub arrived: Time,
    /// When its own `expiration` is over.
    pub deadline: Option<Time>,
    /// Bytes that it counts against the queue's limits.
    pub bytes: u64,
}

/// A message in a page.
#[derive(Clone, Debug)]
pub struct PagedMessage {
    /// What is known of it.
    pub facts: PagedFacts,
    /// The message.
    pub message: Message,
}

impl PagedMessage {
    /// Appends the message's octets.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_message(&self.message, out);
    }

    /// Reads the octets of a message that was put aside.
    ///
    /// # Errors
    /// When they are none.
    pub fn decode(
        facts: PagedFacts,
        octets: &[u8],
        envelopes: &mut Envelopes,
    ) -> Result<Self, DecodeError> {
        let message = Reader::whole_message(octets, envelopes)?;
        Ok(Self { facts, message })
    }
}

/// Where a page belongs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PageAt {
    /// The queue.
    pub queue: QueueId,
    /// The priority level of its messages.
    pub level: u8,
    /// The page.
    pub page: PageId,
}

/// Something to do with a page. The tasks of a vhost are done in order.
#[derive(Clone, Debug)]
pub enum PageTask {
    /// Keep these messages.
    Write {
        /// The page's name.
        page: PageId,
        /// What is in it, in order of arrival.
        messages: Vec<PagedMessage>,
    },
    /// Read messages of a page and hand them to [`Vhost::page_read`](crate::Vhost::page_read).
    Read {
        /// Which page.
        at: PageAt,
        /// Which of its messages.
        wanted: Wanted,
    },
    /// Forget a page. With `ended`, these of its messages have left their queue with it: one reference
    /// ends of every record that brought one.
    Drop {
        /// The page.
        page: PageId,
        /// The messages.
        ended: Option<Held>,
    },
}

/// Which messages of a page are wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// All.
    Whole,
    /// Those whose own deadline comes first: all up to `certain`, and up to `likely` the first few.
    Due {
        /// All up to here, within reason.
        certain: Time,
        /// None behind this.
        likely: Time,
        /// None but these.
        held: Held,
    },
    /// One alone.
    Only(u64),
}

impl Wanted {
    /// Chooses among the messages of a page by what is known of them: which to read, in the order in
    /// which they are to be handed over, and the first own deadline of all others.
    pub fn choose(&self, facts: &[PagedFacts]) -> (Vec<usize>, Option<Time>) {
        match self {
            Self::Whole => ((0..facts.len()).collect(), None),
            Self::Only(seq) => {
                let at = facts.iter().position(|facts| facts.seq == *seq);
                (at.into_iter().collect(), None)
            }
            Self::Due { certain, likely, held } => {
                let left = facts.iter().enumerate().filter(|(_, facts)| held.contains(facts.seq));
                let mut due: Vec<(Time, usize)> =
                    left.filter_map(|(at, facts)| Some((facts.deadline?, at))).collect();
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

/// What was read of a page.
#[derive(Clone, Debug)]
pub struct PageRead {
    /// What was asked for.
    pub wanted: Wanted,
    /// The messages.
    pub messages: Vec<PagedMessage>,
    /// The first own deadline of the page's other messages, if deadlines were asked for.
    pub next_deadline: Option<Time>,
}

/// The messages of a page that are in their queue and nowhere else: not those that have left, nor
/// those that were read back on their own.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Held {
    first: u64,
    /// A bit for each place from the first message on; none while all of them stand one behind the other.
    words: Vec<u64>,
    count: usize,
}

impl Held {
    /// All of these, which are given by their places in the queue, in order.
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

    /// From now on there is a bit for each place.
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

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Whether the message with this place in the queue is one of them.
    pub fn contains(&self, seq: u64) -> bool {
        if self.words.is_empty() {
            return seq.checked_sub(self.first).is_some_and(|place| place < self.count as u64);
        }
        let (word, bit) = self.at(seq);
        seq >= self.first && self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// True if it was one of them.
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
        let number = seq.saturating_sub(self.first);
        (usize::try_from(number / 64).unwrap_or(usize::MAX), 1 << (number % 64))
    }
}

/// Where pages are kept while a vhost comes back from its log: nobody else is served meanwhile, so
/// that it may wait for the disk. What goes wrong is the keeper's to remember.
pub trait Pages: std::fmt::Debug {
    /// Keeps messages.
    fn write(&mut self, page: PageId, messages: Vec<PagedMessage>);

    /// What is known of the messages of a page.
    fn facts(&mut self, page: PageId) -> Vec<PagedFacts>;

    /// Reads messages.
    fn read(&mut self, page: PageId, wanted: Wanted) -> PageRead;

    /// Forgets a page.
    fn remove(&mut self, page: PageId);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn held_is_the_set_of_what_was_put_in_and_not_taken_out(
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
            let mut held = Held::all(seqs);
            for seq in removed {
                prop_assert_eq!(held.remove(seq), model.remove(&seq));
            }
            prop_assert_eq!(held.count(), model.len());
            (0..1200).for_each(|seq| assert_eq!(held.contains(seq), model.contains(&seq), "{seq}"));
        }
    }

    #[test]
    fn a_page_without_gaps_costs_no_bits() {
        assert!(Held::all(5..2053).words.is_empty());
    }
}
