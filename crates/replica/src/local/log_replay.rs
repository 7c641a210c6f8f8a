//! Replay of the records of a vhost's log, decoded and applied to a vhost.

use broker::time::{Now, Time};
use broker::{
    Decoded, Divergence, Envelopes, Lsn, Record, Recovered, RecoveredQueue, Replay, Vhost,
};
use storage::Flags;

use crate::pages::ReplayPages;

/// A record that was read from the log, ready to be applied.
#[derive(Debug)]
pub struct DecodedRecord {
    /// Position of the record.
    pub lsn: storage::Lsn,
    is_spent: bool,
    /// The reason if the record is left out.
    decoded: Result<Decoded, String>,
}

impl DecodedRecord {
    /// Decodes a record. Consecutive ones share their envelopes.
    pub fn new(record: &storage::Record<'_>, envelopes: &mut Envelopes) -> Self {
        let decoded = Record::decode(record.kind, record.payload, envelopes);
        let is_spent = record.flags.has(Flags::SPENT);
        Self { lsn: record.lsn, is_spent, decoded: decoded.map_err(|error| error.to_string()) }
    }
}

/// Replay of a vhost's log.
#[derive(Debug)]
pub struct LogReplay<P> {
    replay: Replay,
    pages: P,
    envelopes: Envelopes,
}

impl<P: ReplayPages> LogReplay<P> {
    /// Begins a replay into an empty vhost, at `now`; `pages` receives messages that do not stay in memory.
    pub fn new(vhost: Vhost, now: Time, pages: P) -> Self {
        Self { replay: Replay::new(vhost, now), pages, envelopes: Envelopes::default() }
    }

    /// The vhost as it is so far.
    pub fn vhost(&self) -> &Vhost {
        self.replay.vhost()
    }

    /// The vhost as it is so far, for measurements.
    pub fn vhost_mut(&mut self) -> &mut Vhost {
        self.replay.vhost_mut()
    }

    /// Sets the time on the axis of the vhost, for the records that follow.
    pub fn set_now(&mut self, now: Time) {
        self.replay.set_now(now);
    }

    /// Applies a record read from the log; calls `ended` with each record of which a reference ended.
    ///
    /// # Errors
    /// The reason why the record is left out. Records applied before stay.
    pub fn apply(
        &mut self,
        record: &storage::Record<'_>,
        ended: &mut dyn FnMut(storage::Lsn),
    ) -> Result<(), String> {
        let decoded = DecodedRecord::new(record, &mut self.envelopes);
        self.apply_decoded(decoded, ended)
    }

    /// Applies a record; calls `ended` with each record of which a reference ended.
    ///
    /// # Errors
    /// The reason why the record is left out.
    pub fn apply_decoded(
        &mut self,
        record: DecodedRecord,
        ended: &mut dyn FnMut(storage::Lsn),
    ) -> Result<(), String> {
        let DecodedRecord { lsn, is_spent, decoded } = record;
        let mut ended = |lsn: Lsn| ended(storage::Lsn(lsn.0));
        let applied =
            self.replay.apply(Lsn(lsn.0), decoded?, is_spent, &mut self.pages, &mut ended);
        applied.map_err(|divergence| divergence.problem)
    }

    /// Ends the reading of the own log, whose last entry ends at `last`: what is applied from now on comes from the
    /// leader.
    ///
    /// # Errors
    /// If declarations are missing: the replica must be rebuilt.
    pub fn follow(&mut self, last: Lsn) -> Result<(), Divergence> {
        self.replay.follow(last)
    }

    /// Ends an entry of the leader, of which `last` is the last position.
    ///
    /// # Errors
    /// If the replica differs from that of the leader.
    pub fn end_entry(&mut self, last: Lsn) -> Result<(), Divergence> {
        self.replay.end_entry(last)
    }

    /// The term of another leader begins behind the last entry.
    pub fn begin_term(&mut self) {
        self.replay.begin_term();
    }

    /// Assumes that any message of a classic queue that was ready until `now` may have been delivered by the leader before,
    /// unless that has handed over.
    pub fn leader_changed(&mut self, now: Time) {
        self.replay.leader_changed(now);
    }

    /// Notes that records are or may be missing.
    pub fn records_lost(&mut self) {
        self.replay.records_lost();
    }

    /// Ends the reading of the log: queues whose declaration is lost are declared again. Returns one sentence
    /// for the operator per problem.
    pub fn recover(&mut self) -> Vec<String> {
        let Recovered { queues, problems } = self.replay.recover();
        let queues = queues.into_iter().map(|queue| {
            let RecoveredQueue { number, name, is_original_name, messages } = queue;
            let whose = if is_original_name { "its old" } else { "a new" };
            format!(
                "queue {number} has lost its declaration: its {messages} messages are kept in queue \
                 '{name}', under {whose} name, without its arguments, and do not expire by their own"
            )
        });
        let problems = problems.into_iter();
        queues.chain(problems.map(|(lsn, problem)| format!("record {lsn}: {problem}"))).collect()
    }

    /// Completes the replay and waits for the pages; the vhost continues from `now`.
    ///
    /// # Errors
    /// If a page could not be written or read.
    pub fn finish(mut self, now: Now, last: storage::Lsn) -> Result<Vhost, P::Error> {
        let vhost = self.replay.finish(now, Lsn(last.0), &mut self.pages);
        self.pages.finish().map(|()| vhost)
    }
}
