//! One page of scheduled messages: the messages are on disk, the facts about them in memory.

use crate::collections::PackedNumbers;
use crate::entry::Entry;
use crate::entry::totals::CountedBytes;
use crate::ids::{EntryId, Lsn};
use crate::page::{PageRecords, PagedMessage, PagedMeta};
use crate::scheduled::delayed::DelayedMessage;
use crate::time::Time;

/// The place of a message among the scheduled ones: its delivery time, then its number.
pub(super) type TimePlace = (Time, u64);

/// The state of a message in a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SlotState {
    /// Waits for the delivery time that it had when the page was written.
    Waits,
    /// Waits for another delivery time.
    Rescheduled,
    /// Has left the page.
    Left,
}

/// The facts about a message in a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// The delivery time when the page was written.
    pub(super) ready_at: Time,
    pub(super) id: EntryId,
    /// The record of the message; 0 if the message is transient.
    pub(super) lsn: Lsn,
    /// Bytes that the message counts against limits.
    pub(super) bytes: u64,
}

impl Slot {
    pub(super) fn place(&self) -> TimePlace {
        (self.ready_at, self.id.seq)
    }
}

/// A page of scheduled messages: the facts in columns, which take less memory than rows.
#[derive(Debug)]
pub(super) struct ScheduledPage {
    /// Delivery times in microseconds, in ascending order; the other columns are in the same order.
    ready_at_us: PackedNumbers,
    lsn: PackedNumbers,
    seq: PackedNumbers,
    bytes: PackedNumbers,
    level: PackedNumbers,
    /// None while all messages wait for these delivery times.
    state: Option<Box<[SlotState]>>,
    /// Indices of the messages, by number.
    by_seq: Box<[u16]>,
    /// Index of the first message that waits for its delivery time.
    first: usize,
    /// Messages that have not left.
    len: usize,
    /// True while some of the messages are being read.
    pub(super) is_being_read: bool,
}

impl ScheduledPage {
    /// A page of these messages, in the order of their places, and the messages as they are written.
    pub(super) fn new(
        entries: Vec<DelayedMessage>,
        counted: CountedBytes,
    ) -> (Self, Vec<PagedMessage>) {
        let column = |number: &dyn Fn(&DelayedMessage) -> u64| {
            PackedNumbers::new(entries.iter().map(number))
        };
        let bytes_of = |message: &DelayedMessage| counted.of_sizes(message.sizes);
        let seq = column(&|message| message.entry.id.seq);
        let count = u16::try_from(entries.len()).expect("a page is a small part of a queue");
        let mut by_seq: Box<[u16]> = (0..count).collect();
        by_seq.sort_unstable_by_key(|at| seq.get(usize::from(*at)));
        let page = Self {
            ready_at_us: column(&|message| message.ready_at.as_micros()),
            lsn: column(&|message| message.entry.lsn.0),
            bytes: column(&bytes_of),
            level: column(&|message| u64::from(message.entry.id.level)),
            state: None,
            len: entries.len(),
            seq,
            by_seq,
            first: 0,
            is_being_read: false,
        };
        let messages = entries.into_iter().map(|message| {
            let bytes = bytes_of(&message);
            let Entry { id, message, lsn, arrived, .. } = message.entry;
            let meta = PagedMeta { seq: id.seq, lsn, arrived, deadline: None, bytes };
            PagedMessage { meta, message }
        });
        (page, messages.collect())
    }

    fn slot(&self, at: usize) -> Slot {
        let level = u8::try_from(self.level.get(at)).expect("the column has levels");
        Slot {
            ready_at: self.ready_at(at),
            id: EntryId { seq: self.seq.get(at), level },
            lsn: Lsn(self.lsn.get(at)),
            bytes: self.bytes.get(at),
        }
    }

    fn ready_at(&self, at: usize) -> Time {
        Time::from_micros(self.ready_at_us.get(at))
    }

    fn state(&self, at: usize) -> SlotState {
        self.state.as_ref().map_or(SlotState::Waits, |states| states[at])
    }

    /// Messages of the page when it was written.
    fn written(&self) -> usize {
        self.by_seq.len()
    }

    /// Messages that have not left.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The place of the first message that waits for its delivery time.
    pub(super) fn first(&self) -> Option<TimePlace> {
        let at = self.first;
        (at < self.written()).then(|| (self.ready_at(at), self.seq.get(at)))
    }

    /// The facts about a message that has not left.
    pub(super) fn get(&self, seq: u64) -> Option<Slot> {
        let at = self.index_of(seq)?;
        (self.state(at) != SlotState::Left).then(|| self.slot(at))
    }

    fn index_of(&self, seq: u64) -> Option<usize> {
        let seq_of = |at: &u16| self.seq.get(usize::from(*at));
        let at = self.by_seq.binary_search_by_key(&seq, seq_of).ok()?;
        Some(usize::from(self.by_seq[at]))
    }

    /// Changes the state of a message that has not left. Returns the facts about the message.
    pub(super) fn set_state(&mut self, seq: u64, state: SlotState) -> Option<Slot> {
        let at = self.index_of(seq)?;
        let written = self.written();
        let states =
            self.state.get_or_insert_with(|| (0..written).map(|_| SlotState::Waits).collect());
        if states[at] == SlotState::Left {
            return None;
        }
        states[at] = state;
        self.len -= usize::from(state == SlotState::Left);
        while states.get(self.first).is_some_and(|state| *state != SlotState::Waits) {
            self.first += 1;
        }
        Some(self.slot(at))
    }

    /// The numbers of the first messages that wait for their delivery times: those up to `until`, at least `least` and
    /// at most `most`.
    pub(super) fn due(&self, until: Time, least: usize, most: usize) -> Vec<u64> {
        let waiting = self.waiting_from(self.first).take(most).enumerate();
        let due = waiting.take_while(|(at, slot)| *at < least || slot.ready_at <= until);
        due.map(|(_, slot)| slot.id.seq).collect()
    }

    /// The messages that wait for their delivery times, behind a place.
    pub(super) fn after(&self, passed: TimePlace) -> impl Iterator<Item = Slot> {
        let at = self.ready_at_us.lower_bound(passed.0.as_micros());
        self.waiting_from(at).skip_while(move |slot| slot.place() <= passed)
    }

    fn waiting_from(&self, at: usize) -> impl Iterator<Item = Slot> {
        let waiting = (at..self.written()).filter(|at| self.state(*at) == SlotState::Waits);
        waiting.map(|at| self.slot(at))
    }

    /// The messages that have not left.
    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> {
        let here = (0..self.written()).filter(|at| self.state(*at) != SlotState::Left);
        here.map(|at| self.slot(at))
    }
}

impl PageRecords for ScheduledPage {
    fn records(&self) -> Vec<Lsn> {
        self.slots().map(|slot| slot.lsn).filter(|lsn| *lsn != Lsn(0)).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::message::{Content, Envelope, Message, MessageMeta};

    use super::*;

    fn entry(ready_at_ms: u64, seq: u64, lsn: u64) -> DelayedMessage {
        let envelope = std::sync::Arc::new(Envelope::new("".into(), "k".into()));
        let content = Content::Assembled { properties: vec![0, 0].into(), body: "b".into() };
        let message = Message::new(envelope, MessageMeta::default(), content, None);
        let (ready_at, sizes) = (Time::from_millis(ready_at_ms), message.sizes());
        let entry = Entry::new(EntryId { seq, level: 3 }, message, Lsn(lsn), Time::default());
        DelayedMessage { ready_at, sizes, entry }
    }

    #[test]
    fn messages_of_a_page_need_not_have_consecutive_numbers() {
        let far = u64::MAX;
        let entries = vec![entry(1, far, 5), entry(2, 7, 0), entry(2, 9, 6)];
        let (mut page, messages) = ScheduledPage::new(entries, CountedBytes::Body);
        assert_eq!(messages.iter().map(|one| one.meta.seq).collect::<Vec<_>>(), [far, 7, 9]);
        assert_eq!(page.get(8).map(|slot| slot.id), None);
        let slot = page.get(far).unwrap();
        assert_eq!((slot.place(), slot.id.level), ((Time::from_millis(1), far), 3));
        assert_eq!(page.due(Time::from_millis(1), 0, 9), [far]);
        assert_eq!(page.due(Time::default(), 2, 9), [far, 7]);
        page.set_state(far, SlotState::Left).unwrap();
        assert_eq!(page.first(), Some((Time::from_millis(2), 7)));
        assert!(page.set_state(far, SlotState::Rescheduled).is_none());
        page.set_state(7, SlotState::Rescheduled).unwrap();
        let after: Vec<_> = page.after((Time::from_millis(2), 7)).map(|slot| slot.id.seq).collect();
        assert_eq!((page.len(), after, page.records()), (2, vec![9], vec![Lsn(6)]));
    }
}
