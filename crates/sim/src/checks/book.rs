//! The knowledge of a run: what was published, confirmed, delivered and settled, and where each message must be.

use std::collections::BTreeMap;

use crate::checks::ledger::Ledger;
use crate::checks::schedules::ScheduleBook;
use crate::clients::topology::Topology;
use crate::cluster::content::group_content::GroupContent;
use crate::cluster::content::pages::PageCounts;
use crate::plan::FAST_PPM;

/// Ticks for which a leader that is replaced may go on handing out messages of classic queues: an election time.
const STALE_TICKS_MAX: u64 = 45;

/// A request that takes all messages of a queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Emptied {
    /// No client has asked for one.
    Never,
    /// A purge, which leaves what is on its way to a client.
    Purged,
    /// A deletion.
    Deleted,
}

/// A message of the run.
#[derive(Clone, Debug)]
pub(crate) struct MessageFacts {
    /// The queue to which it was published.
    pub(crate) first: usize,
    /// True time at which the leader took it.
    pub(crate) published_us: u64,
    /// The term from whose wall clocks the axis comes.
    pub(crate) root: u64,
    /// Time to live of its own.
    pub(crate) own_ms: Option<u64>,
    /// The delay that its publisher asked for.
    pub(crate) delay_ms: u64,
    pub(crate) is_confirmed: bool,
    /// A client has acknowledged it, and may have been heard.
    pub(crate) is_acked: bool,
    /// Time at which a client was answered that had acknowledged it, or purged its queue.
    pub(crate) settled_us: Option<u64>,
    /// The most that a client has asked to do with its queue.
    pub(crate) emptied: Emptied,
    /// The queues from which it was handed out, each with the time at which it first was, and whether it had the mark.
    pub(crate) handed: BTreeMap<usize, (u64, bool)>,
    /// True time and root of its first redrive of which no majority is known yet.
    pub(crate) redriven_since: Option<(u64, u64)>,
    /// Number of its redrives that are committed.
    pub(crate) redrives: u64,
}

impl MessageFacts {
    /// A message that is published now.
    pub(crate) fn published(first: usize, (published_us, root): (u64, u64)) -> Self {
        Self {
            first,
            published_us,
            root,
            own_ms: None,
            delay_ms: 0,
            is_confirmed: false,
            is_acked: false,
            settled_us: None,
            emptied: Emptied::Never,
            handed: BTreeMap::new(),
            redriven_since: None,
            redrives: 0,
        }
    }

    /// Number of times that leaders have moved it out of the queue of dead letters, the last one perhaps without a commit.
    fn redrives_made(&self) -> u64 {
        self.redrives + u64::from(self.redriven_since.is_some())
    }
}

/// A delivery that leaves a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handed {
    pub(crate) id: u64,
    pub(crate) queue: usize,
    pub(crate) redelivered: bool,
    /// Number of its redrives, as its headers say.
    pub(crate) redrives: u64,
    pub(crate) node: usize,
    pub(crate) term: u64,
    /// Ticks for which the node has led although a newer leader was active.
    pub(crate) stale_ticks: Option<u64>,
}

/// The knowledge of a run.
#[derive(Debug)]
pub(crate) struct Book {
    pub(crate) topology: Topology,
    pub(crate) messages: BTreeMap<u64, MessageFacts>,
    pub(crate) ledger: Ledger,
    pub(crate) schedules: ScheduleBook,
    /// Term of the newest leader that serves clients.
    pub(crate) newest_term: u64,
    leaders: BTreeMap<u64, usize>,
    /// The term that began with the wall clocks, for each term whose axis continues it.
    roots: BTreeMap<u64, u64>,
    pub(crate) violations: Vec<String>,
    pub(crate) deliveries: u64,
    /// Barriers that were answered with an entry.
    pub(crate) barriers: u64,
    /// Page tasks of all nodes.
    pub(crate) pages: PageCounts,
    /// Purges and deletions of the queue `clean` that are not answered: they may also take what is published meanwhile.
    pub(crate) open_purges: usize,
    /// Deletions of the queue `clean` whose client was lost before the queue was there again.
    pub(crate) doubts: u64,
    /// Number of these deletions behind which a client has declared the queue.
    doubts_over: u64,
    /// Notes of what clients have seen, for the story; none if nobody reads it.
    pub(crate) notes: Option<Vec<String>>,
}

impl Book {
    pub(crate) fn new(topology: Topology, content: GroupContent, keeps_notes: bool) -> Self {
        Self {
            ledger: Ledger::new(content),
            schedules: ScheduleBook::default(),
            topology,
            messages: BTreeMap::new(),
            newest_term: 0,
            leaders: BTreeMap::new(),
            roots: BTreeMap::new(),
            violations: Vec::new(),
            deliveries: 0,
            barriers: 0,
            pages: PageCounts::default(),
            open_purges: 0,
            doubts: 0,
            doubts_over: 0,
            notes: keeps_notes.then(Vec::new),
        }
    }

    pub(crate) fn violation(&mut self, text: String) {
        self.violations.push(text);
    }

    /// Notes something for the story.
    pub(crate) fn note(&mut self, what: std::fmt::Arguments<'_>) {
        if let Some(notes) = &mut self.notes {
            notes.push(what.to_string());
        }
    }

    /// A node says that it leads a term.
    pub(crate) fn leads(&mut self, term: u64, node: usize) {
        let other = *self.leaders.entry(term).or_insert(node);
        if other != node {
            self.violation(format!("two leaders: nodes {other} and {node} lead term {term}"));
        }
    }

    /// The axis of `term` begins, as the continuation of that of another term.
    pub(crate) fn axis(&mut self, term: u64, continues: Option<u64>) {
        let root = continues.map_or(term, |before| self.root_of(before));
        self.roots.insert(term, root);
    }

    pub(crate) fn root_of(&self, term: u64) -> u64 {
        self.roots.get(&term).copied().unwrap_or(0)
    }

    /// A leader serves clients.
    pub(crate) fn serves(&mut self, term: u64) {
        self.newest_term = self.newest_term.max(term);
    }

    pub(crate) fn confirmed(&mut self, id: u64) {
        self.note(format_args!("message {id} is confirmed"));
        let has_entered = self.ledger.has_entered(id)
            | self.schedules.confirmed(id, &self.ledger.waits, &mut self.violations);
        let Some(message) = self.messages.get_mut(&id) else { return };
        message.is_confirmed = true;
        // A message that was acknowledged before its batch was written is never in the log.
        if !has_entered && !message.is_acked && message.emptied == Emptied::Never {
            self.violation(format!("confirmed early: message {id} is not on a majority"));
        }
    }

    /// A delivery leaves a node at `now_us`.
    pub(crate) fn handed(&mut self, handed: Handed, now_us: u64) {
        self.deliveries += 1;
        let Handed { id, queue, redelivered, redrives, node, term, stale_ticks } = handed;
        let (is_quorum, name) = {
            let spec = &self.topology.queues[queue];
            (spec.is_quorum, spec.name)
        };
        let root = self.root_of(term);
        let Some(message) = self.messages.get_mut(&id) else {
            return self.violation(format!("message {id} was never published"));
        };
        let first = message.handed.get(&queue).copied();
        // A redriven message is a new one. What was held of the one before leaves later.
        let is_of_the_one_before = redrives < message.redrives_made();
        if first.is_none() && !is_of_the_one_before {
            message.handed.insert(queue, (now_us, redelivered));
        }
        // Deliveries of one commit leave in the order of their connections: the second, which is marked, before the first,
        // perhaps, if a channel was closed meanwhile.
        let was_handed = first.is_some_and(|first| first != (now_us, true));
        let message = message.clone();
        let whence = format!("message {id} from '{name}' of node {node} in term {term}");
        self.note(format_args!("{whence} is handed out, redelivered: {redelivered}"));
        let is_stale = term < self.newest_term;
        if stale_ticks.is_some_and(|ticks| ticks > STALE_TICKS_MAX) {
            self.violation(format!("stale leader: {whence}"));
        }
        // A leader that is cut off may hand out messages of classic queues until it knows, and one that has stood still
        // what was committed before, as if the network had been slow.
        let is_excused = is_stale;
        // What was held for a client when its queue was deleted leaves with the answer to the deletion.
        let leaves_with_queue = message.emptied == Emptied::Deleted
            && queue == message.first
            && message.settled_us == Some(now_us);
        if !is_excused && message.settled_us.is_some() && !leaves_with_queue {
            self.violation(format!("settled message comes back: {whence}"));
        }
        if !is_excused && was_handed && !redelivered && !is_of_the_one_before {
            self.violation(format!("redelivered without a mark: {whence}"));
        }
        // A message that came and went with its queue in one batch is never in the log.
        let needs_log = is_quorum && (message.emptied < Emptied::Deleted || queue != message.first);
        if needs_log && !self.ledger.has_entered_queue(id, name) {
            self.violation(format!("delivered before its commit: {whence}"));
        }
        // A leader that was replaced may not know of a redrive, which makes another message of it.
        let is_as_before = is_stale && message.redrives > 0;
        let is_marked = self.ledger.is_marked(id, name, is_of_the_one_before);
        if needs_log && !redelivered && !is_as_before && !is_marked {
            self.violation(format!("delivered before its mark is committed: {whence}"));
        }
        let earliest = self.topology.earliest_ms(message.first, message.own_ms, queue);
        let Some(earliest_ms) = earliest else {
            return self.violation(format!("message in a wrong queue: {whence}"));
        };
        let needed_us = (earliest_ms + message.delay_ms) * 1000;
        let passed_us = now_us - message.published_us;
        let counts = root == message.root && !is_as_before && redrives >= message.redrives;
        if counts && passed_us + passed_us * FAST_PPM / 1_000_000 + 20 < needed_us {
            self.violation(format!("early: {whence} after {passed_us} us of {needed_us}"));
        }
        if let Some(why) = self.schedules.fault_of_delivery(id, (now_us, root), is_stale) {
            self.violation(format!("{why}: {whence}"));
        }
    }

    /// An operation on messages that wait is answered.
    pub(crate) fn operated(&mut self, request: u64, is_found: bool) {
        self.note(format_args!("operation {request} is answered, found: {is_found}"));
        self.schedules.answered(request, is_found, &self.ledger.waits, &mut self.violations);
    }

    /// A client acknowledges a message for good.
    pub(crate) fn acked(&mut self, id: u64) {
        self.note(format_args!("message {id} is acknowledged"));
        if let Some(message) = self.messages.get_mut(&id) {
            message.is_acked = true;
        }
    }

    /// A client was answered behind its acknowledgements.
    pub(crate) fn settled(&mut self, ids: &[u64], now_us: u64) {
        self.note(format_args!("messages {ids:?} are settled"));
        for id in ids {
            if let Some(message) = self.messages.get_mut(id) {
                message.settled_us.get_or_insert(now_us);
            }
        }
    }

    /// A leader has moved a message out of the queue of dead letters, back to where it died, at this true time and with
    /// this root.
    pub(crate) fn redrives(&mut self, id: u64, since: (u64, u64)) {
        self.note(format_args!("message {id} is redriven"));
        if let Some(message) = self.messages.get_mut(&id) {
            // It is a new message there.
            message.handed.clear();
            message.redriven_since.get_or_insert(since);
        }
    }

    /// A redrive of a message to a queue is committed: its times count from there.
    fn redriven(&mut self, id: u64, queue: &str) {
        let first = self.topology.number(queue).expect("a queue of the run");
        let Some(message) = self.messages.get_mut(&id) else { return };
        // Without it, the message was redriven again before its last redrive was committed: that time counts for both.
        if let Some(since) = message.redriven_since.take() {
            (message.published_us, message.root) = since;
        }
        // The time to live of its own, too, is back only where the message had it.
        message.own_ms = message.own_ms.filter(|_| first == message.first);
        message.first = first;
        message.redrives += 1;
    }

    /// A client asks to purge or delete a queue. Returns the messages that must be gone when it is answered: those that were
    /// confirmed, and are with no client.
    pub(crate) fn purges(&mut self, queue: usize, by: Emptied) -> Vec<u64> {
        self.note(format_args!("queue {queue} is to be emptied"));
        self.open_purges += 1;
        let mut gone = Vec::new();
        for (id, message) in self.messages.iter_mut().filter(|(_, it)| it.first == queue) {
            message.emptied = message.emptied.max(by);
            if message.is_confirmed && message.handed.is_empty() && message.delay_ms == 0 {
                gone.push(*id);
            }
        }
        gone
    }

    /// True if the queue `clean` may be purged or deleted at any moment, or missing.
    pub(crate) fn is_clean_in_doubt(&self) -> bool {
        self.open_purges > 0 || self.doubts_over < self.doubts
    }

    /// The queue `clean` was declared behind so many of the deletions in doubt.
    pub(crate) fn clean_declared(&mut self, doubts: u64) {
        self.doubts_over = self.doubts_over.max(doubts);
    }

    /// Ends the run, in which everything was drained: nothing that was confirmed may be missing.
    pub(crate) fn end(&mut self) {
        let lost: Vec<u64> = self
            .messages
            .iter()
            .filter(|(_, it)| it.is_confirmed && !it.is_acked && it.emptied == Emptied::Never)
            .map(|(id, _)| *id)
            .filter(|id| !self.schedules.is_gone(*id))
            .collect();
        if let Some(first) = lost.first() {
            self.violation(format!("{} confirmed messages are lost, first {first}", lost.len()));
        }
    }

    /// Looks for faults that a committed entry has shown.
    pub(crate) fn look_at_ledger(&mut self) {
        let entries = self.ledger.len();
        let waits = &mut self.ledger.waits;
        let changes = waits.take_events();
        self.violations.extend(waits.take_faults());
        self.schedules.follow(changes, entries, waits, &mut self.violations);
        let (messages, schedules) = (&self.messages, &self.schedules);
        let is_done = |id: u64| {
            let message = messages.get(&id);
            message.is_none_or(|it| it.is_acked || it.emptied > Emptied::Never)
                || schedules.is_gone(id)
        };
        let faults = self.ledger.take_faults(&is_done);
        self.violations.extend(faults);
        for (id, queue) in self.ledger.take_redriven() {
            self.redriven(id, &queue);
        }
    }
}
