//! The committed metadata as all must have them: the items behind every entry, and what became of every change that was asked
//! for.

use std::collections::BTreeMap;

use replica::metadata::{ItemChange, ItemKey, ItemValue, Items, MetadataRecord};
use storage::{EntryContent, Flags, LogEntry};

use crate::checks::hash::{add, hash};

/// A change that an operator has asked for.
#[derive(Debug)]
struct Ask {
    changes: Vec<ItemChange>,
    asked_us: u64,
    answer: Option<(Answer, u64)>,
}

/// The answer to an operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// A majority has the change.
    Made,
    /// The change is not made, and never will be.
    Refused,
    /// The change may still be made.
    Unknown,
}

/// A change that a leader has taken, as far as it changes something.
#[derive(Debug)]
struct Proposal {
    ask: u64,
    changes: Vec<ItemChange>,
    /// True if one entry has room for it.
    is_small: bool,
    /// Number of parts that are committed.
    committed: usize,
}

/// A part of a proposal: the term and first position of the proposal, and the number of the part.
type Part = ((u64, u64), usize);

/// An item, with the position of its record.
type Item = (u64, ItemValue);

/// The committed metadata.
#[derive(Default, Debug)]
pub(crate) struct MetadataLog {
    items: BTreeMap<ItemKey, Item>,
    /// The state behind each entry, by the position of its last record.
    states: BTreeMap<u64, u64>,
    asks: BTreeMap<u64, Ask>,
    /// By the term of the leader and the position of the first record.
    proposals: BTreeMap<(u64, u64), Proposal>,
    /// Position of the last record of a change that was answered.
    made: u64,
    /// The term of the last entry with records.
    term: u64,
    pub(crate) made_count: u64,
    pub(crate) refused_count: u64,
    faults: Vec<String>,
}

/// A number that depends on the items.
pub(crate) fn state_of(items: &Items) -> u64 {
    items.values().iter().fold(13, |sum, (key, value)| add_item(sum, key, items.lsn(key).0, value))
}

fn add_item(sum: u64, key: &ItemKey, lsn: u64, value: &ItemValue) -> u64 {
    hash(value.to_string().as_bytes(), add(hash(format!("{key:?}").as_bytes(), sum), lsn))
}

impl MetadataLog {
    /// The metadata of a group that begins.
    pub(crate) fn new() -> Self {
        let empty = state_of(&Items::default());
        Self { states: BTreeMap::from([(0, empty)]), ..Self::default() }
    }

    // ---- what is asked for ----

    /// Value of an item in the committed log.
    pub(crate) fn value(&self, key: &ItemKey) -> Option<&ItemValue> {
        self.items.get(key).map(|(_, value)| value)
    }

    /// An operator asks for a change. Returns its number.
    pub(crate) fn ask(&mut self, changes: Vec<ItemChange>, asked_us: u64) -> u64 {
        let id = self.asks.len() as u64;
        self.asks.insert(id, Ask { changes, asked_us, answer: None });
        id
    }

    pub(crate) fn changes(&self, id: u64) -> Vec<ItemChange> {
        self.asks.get(&id).expect("an operator has asked").changes.clone()
    }

    pub(crate) fn asked_us(&self, id: u64) -> u64 {
        self.asks.get(&id).expect("an operator has asked").asked_us
    }

    pub(crate) fn answer(&self, id: u64) -> Option<Answer> {
        self.asks.get(&id)?.answer.map(|(answer, _)| answer)
    }

    /// The leader of `term` makes records of a change, behind the position `last`: those of its parts that change `items`. A
    /// small change has less than `entry_bytes_max` bytes.
    pub(crate) fn proposes(
        &mut self,
        id: u64,
        (term, last): (u64, u64),
        items: &BTreeMap<ItemKey, ItemValue>,
        entry_bytes_max: usize,
    ) -> usize {
        let changes = self.changes(id);
        let is_newest = |(at, change): &(usize, &ItemChange)| {
            changes[at + 1..].iter().all(|later| later.key != change.key)
        };
        // Of several changes of an item, the last one counts.
        let newest = changes.iter().enumerate().filter(is_newest).map(|(_, change)| change);
        let is_new = |change: &&ItemChange| items.get(&change.key) != change.value.as_ref();
        let news: Vec<ItemChange> = newest.filter(is_new).cloned().collect();
        let bytes = news.iter().map(|it| format!("{:?}", it.key).len() + text(it).len() + 64);
        let is_small = bytes.sum::<usize>() < entry_bytes_max;
        let count = news.len();
        if count > 0 && self.answer(id) == Some(Answer::Refused) {
            self.faults.push(format!("change {id} is refused, and proposed"));
        }
        if count > 0 {
            let proposal = Proposal { ask: id, changes: news, is_small, committed: 0 };
            if self.proposals.insert((term, last + 1), proposal).is_some() {
                self.faults.push(format!("term {term} has two changes behind position {last}"));
            }
        }
        count
    }

    /// An operator is answered.
    pub(crate) fn answered(&mut self, id: u64, answer: Answer, now_us: u64) {
        let ask = self.asks.get_mut(&id).expect("an operator has asked");
        assert!(ask.answer.is_none(), "change {id} is answered twice");
        ask.answer = Some((answer, now_us));
        let mut proposals = self.proposals.iter().filter(|(_, proposal)| proposal.ask == id);
        let proposal = proposals.next();
        match answer {
            Answer::Made => {
                self.made_count += 1;
                let Some(((_, first), proposal)) = proposal else { return };
                let count = proposal.changes.len();
                if proposal.committed < count {
                    self.faults.push(format!("change {id} is answered, and not on a majority"));
                }
                self.made = self.made.max(first + count as u64 - 1);
            }
            Answer::Refused => {
                self.refused_count += 1;
                if proposal.is_some() {
                    self.faults.push(format!("change {id} is refused, and proposed"));
                }
            }
            Answer::Unknown => {}
        }
    }

    // ---- what is committed ----

    /// Applies a committed entry, once. Returns the state behind it.
    pub(crate) fn apply(&mut self, entry: &LogEntry) -> Result<u64, String> {
        let mut changed = Vec::new();
        for record in entry.records() {
            let record = record.map_err(|fault| fault.to_string())?;
            let is_first = std::mem::replace(&mut self.term, entry.term.0) != entry.term.0;
            let decoded = MetadataRecord::decode(record.kind, record.payload)?;
            if is_first && !matches!(decoded, MetadataRecord::Digest(_)) {
                return Err(format!("term {} does not begin with a digest", entry.term));
            }
            if let MetadataRecord::Change(change) = decoded {
                changed.push(self.expect((entry.term.0, record.lsn.0), &change)?);
                // The log may have left out the record that removed a spent one.
                let value = change.value.filter(|_| !record.flags.has(Flags::SPENT));
                match value {
                    Some(value) => self.items.insert(change.key, (record.lsn.0, value)),
                    None => self.items.remove(&change.key),
                };
            }
        }
        self.take_parts(&changed)?;
        let items = self.items.iter();
        let state = items.fold(13, |sum, (key, (lsn, value))| add_item(sum, key, *lsn, value));
        if let EntryContent::Records(records) = &entry.content {
            self.states.insert(records.last.0, state);
        }
        Ok(state)
    }

    /// Finds the proposal of a committed change. Returns it with the number of the part.
    fn expect(&self, at: (u64, u64), change: &ItemChange) -> Result<Part, String> {
        let unknown = || format!("nobody has taken the change at position {}: {change:?}", at.1);
        let (of, proposal) =
            self.proposals.range((at.0, 0)..=at).next_back().ok_or_else(unknown)?;
        let part = usize::try_from(at.1 - of.1).map_err(|error| error.to_string())?;
        match proposal.changes.get(part) == Some(change) {
            true => Ok((*of, part)),
            false => Err(unknown()),
        }
    }

    /// Takes the parts of a change that are in an entry: all of a small change, and the next ones of another.
    fn take_parts(&mut self, parts: &[Part]) -> Result<(), String> {
        let Some((of, _)) = parts.first() else { return Ok(()) };
        let proposal = self.proposals.get_mut(of).expect("a proposal that was found");
        let ask = proposal.ask;
        for part in parts {
            if *part != (*of, proposal.committed) {
                return Err(format!("it has part {part:?} behind {} of {ask}", proposal.committed));
            }
            proposal.committed += 1;
        }
        let (done, all) = (proposal.committed, proposal.changes.len());
        match proposal.is_small && done < all {
            true => Err(format!("it has {done} of {all} parts of change {ask}")),
            false => Ok(()),
        }
    }

    // ---- what nodes show ----

    /// A node shows items as committed ones, up to a position. `leads` if it is the newest leader.
    pub(crate) fn shown(&mut self, node: usize, items: &Items, last: u64, leads: bool) {
        match self.states.get(&last) {
            Some(state) if *state == state_of(items) => {}
            Some(_) => {
                self.faults.push(format!("node {node} shows other items at position {last}"));
            }
            None => self.faults.push(format!("node {node} shows what is not committed, at {last}")),
        }
        if leads && last < self.made {
            let made = self.made;
            self.faults.push(format!("node {node} leads, and lacks {last} to {made} of changes"));
        }
    }

    /// Position of the last committed record.
    pub(crate) fn last(&self) -> u64 {
        self.states.keys().next_back().copied().unwrap_or(0)
    }

    pub(crate) fn take_faults(&mut self) -> Vec<String> {
        std::mem::take(&mut self.faults)
    }

    /// Ends the run: every node shows these items. Each must be that of a change that was not refused, and that was not over
    /// when a change began that was made.
    pub(crate) fn end(&mut self) {
        let mut keys: Vec<&ItemKey> = self.items.keys().collect();
        keys.extend(self.asks.values().flat_map(|ask| ask.changes.iter().map(|it| &it.key)));
        keys.sort_unstable();
        keys.dedup();
        let wrong = keys.into_iter().find(|key| !self.is_explained(key));
        if let Some(key) = wrong {
            let value = self.value(key);
            self.faults.push(format!("item {key:?} is {value:?} in the end, which nobody wanted"));
        }
    }

    fn is_explained(&self, key: &ItemKey) -> bool {
        let writes = |ask: &Ask| {
            let last = ask.changes.iter().rfind(|change| change.key == *key);
            last.map(|change| change.value.clone())
        };
        let newest_made =
            |it: &&Ask| matches!(it.answer, Some((Answer::Made, _))) && writes(it).is_some();
        let made_us = self.asks.values().filter(newest_made).map(|ask| ask.asked_us).max();
        let found = self.value(key).cloned();
        if found.is_none() && made_us.is_none() {
            return true;
        }
        self.asks.values().any(|ask| {
            let over_us = match ask.answer {
                Some((Answer::Made, at_us)) => at_us,
                Some((Answer::Refused, _)) => return false,
                Some((Answer::Unknown, _)) | None => u64::MAX,
            };
            writes(ask) == Some(found.clone()) && made_us.is_none_or(|made_us| made_us <= over_us)
        })
    }
}

fn text(change: &ItemChange) -> String {
    change.value.as_ref().map(ToString::to_string).unwrap_or_default()
}
