//! One vhost on this node with its clients: everything that is behind the lock of a vhost.
//!
//! Inputs are calls, with the time as an argument. After each input that changes the vhost, [`LocalVhost::end_batch`] tells
//! the driver what follows. The server calls with the lock of the vhost held, the simulator in simulated time.

mod contents;
mod log_replay;
#[cfg(test)]
mod tests;

pub use contents::Contents;
pub use log_replay::{DecodedRecord, LogReplay};

use std::sync::Arc;

use broker::access::Access;
use broker::page::{PageLocation, PageRead, PageTask};
use broker::refusal::Refusal;
use broker::time::{Now, Time};
use broker::{ConnectionId, Lsn, Request, Vhost};
use storage::{EntryContent, LogEntry, WriteBatch, Written};

use crate::clients::{
    Batch, ClientEnd, DeferredReply, Links, Surroundings, VhostOutputs, close_all,
};
use crate::log_queue::LogQueue;
use crate::pages::ReplayPages;
use crate::vhost::HandOverTask;

/// The receiver of the records of an entry. It calls back with each record of which a reference ended.
pub type EntrySink<'a> = &'a mut dyn FnMut(&storage::Record<'_>, &mut dyn FnMut(storage::Lsn));

/// The state after due work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ticked {
    /// Another node leads, so that no work is its own: the records of the leader tell everything.
    Follows,
    /// All work waits, because another node is to lead.
    Frozen,
    /// Due work was done, or a slice of it.
    Done {
        /// True if more is due.
        has_more: bool,
    },
}

/// One vhost on this node, with its clients.
#[derive(Debug)]
pub struct LocalVhost<C, P> {
    contents: Contents<P>,
    outputs: VhostOutputs<C>,
    /// The position up to which a majority of nodes has the log; none without a cluster, where nothing is held.
    committed: Option<Lsn>,
    /// Answers whose records are durable, for the next batch.
    replies: Vec<DeferredReply>,
    /// True while another node is to lead: commands of clients and due work wait.
    is_frozen: bool,
    /// The refusal for connections that are opened after the broker has begun to stop.
    shutdown: Option<Refusal>,
}

impl<C: ClientEnd, P: ReplayPages> LocalVhost<C, P> {
    /// A vhost of this node alone.
    pub fn alone(contents: Contents<P>) -> Self {
        Self::new(contents, LogQueue::default(), None)
    }

    /// A vhost that other nodes have as well; a majority has its log up to `committed`.
    pub fn of_group(contents: Contents<P>, committed: Lsn) -> Self {
        Self::new(contents, LogQueue::on_axis(), Some(committed))
    }

    fn new(contents: Contents<P>, log: LogQueue, committed: Option<Lsn>) -> Self {
        Self {
            contents,
            outputs: VhostOutputs::new(log),
            committed,
            replies: Vec::new(),
            is_frozen: false,
            shutdown: None,
        }
    }

    // ---- views ----

    /// The vhost, for readers. That of a replica is complete, but policies and timers take effect at its promotion.
    pub fn vhost(&self) -> &Vhost {
        self.contents.vhost()
    }

    /// The vhost, for measurements, which change nothing else in it.
    pub fn vhost_mut(&mut self) -> &mut Vhost {
        self.contents.vhost_mut()
    }

    /// True if this node leads the vhost.
    pub fn is_leading(&self) -> bool {
        matches!(self.contents, Contents::Leads(_))
    }

    /// True if another node leads the vhost, or the vhost is down.
    pub fn is_following(&self) -> bool {
        matches!(self.contents, Contents::Follows(_))
    }

    /// The vhost, to change it: none while this node follows; an empty one once it is given up.
    pub fn leading_mut(&mut self) -> Option<&mut Vhost> {
        self.contents.serving_mut()
    }

    /// The vhost, to change it for a client.
    ///
    /// # Panics
    /// If this node follows: clients are in a vhost only while this node leads it.
    pub fn serving_mut(&mut self) -> &mut Vhost {
        serving(&mut self.contents)
    }

    /// The position up to which a majority of nodes has the log; none without a cluster.
    pub fn committed(&self) -> Option<Lsn> {
        self.committed
    }

    /// The clients.
    pub fn clients(&self) -> &Links<C> {
        &self.outputs.links
    }

    /// The clients.
    pub fn clients_mut(&mut self) -> &mut Links<C> {
        &mut self.outputs.links
    }

    /// True while another node is to lead: commands of clients and due work wait.
    pub fn is_frozen(&self) -> bool {
        self.is_frozen
    }

    /// True once all connections are closed, because the vhost is given up or the broker stops.
    pub fn is_closing(&self) -> bool {
        self.shutdown.is_some()
    }

    // ---- clients ----

    /// Opens a connection; a client's, if it has an `end`. If the broker is stopping, the connection is closed at once: the
    /// batch has to be ended.
    ///
    /// # Panics
    /// If this node follows.
    pub fn open(
        &mut self,
        now: Now,
        name: &str,
        access: Arc<Access>,
        cancel_notify: bool,
        end: Option<C>,
    ) -> ConnectionId {
        let vhost = serving(&mut self.contents);
        let id = vhost.open_connection(access, cancel_notify);
        vhost.set_connection_name(id, name);
        if let Some(end) = end {
            self.outputs.links.insert(id, end);
        }
        if let Some(refusal) = self.shutdown.clone() {
            vhost.force_close(now, id, refusal);
        }
        id
    }

    /// Removes a connection, and returns its end if it is a client's.
    pub fn close(&mut self, now: Now, connection: ConnectionId) -> Option<C> {
        serving(&mut self.contents).close_connection(now, connection);
        self.outputs.links.remove(connection)
    }

    /// Applies commands of one connection, in order, until the work is more than `work_max`. Returns true if it is: the
    /// commands behind stay in `requests`.
    pub fn apply<'a>(
        &mut self,
        now: Now,
        connection: ConnectionId,
        requests: &mut impl Iterator<Item = Request<'a>>,
        work_max: u64,
    ) -> bool {
        let vhost = serving(&mut self.contents);
        if let Some(link) = self.outputs.links.get(connection) {
            vhost.set_backlog(now, connection, link.backlog(link.end.unsent()));
        }
        let work_max = vhost.work_done() + work_max;
        for request in requests {
            vhost.apply(now, connection, request);
            if vhost.work_done() > work_max {
                return true;
            }
        }
        false
    }

    /// Takes a report that `unsent` bytes wait for the socket of a client, whose deliveries the core holds back.
    pub fn report_backlog(&mut self, now: Now, connection: ConnectionId, unsent: u64) {
        let link = self.outputs.links.get(connection);
        let backlog = link.map_or(unsent, |link| link.backlog(unsent));
        serving(&mut self.contents).set_backlog(now, connection, backlog);
    }

    // ---- due work and shortage ----

    /// Does due work, or a slice of it, with or without an alarm.
    pub fn tick(&mut self, now: Now, has_alarm: bool) -> Ticked {
        if self.is_frozen {
            return Ticked::Frozen;
        }
        self.set_alarm(now, has_alarm);
        let Some(vhost) = self.contents.serving_mut() else { return Ticked::Follows };
        vhost.tick(now);
        Ticked::Done { has_more: vhost.next_wake().is_some_and(|wake| wake <= now.time) }
    }

    /// Brings the vhost up to date with the alarm, during which work without a client's command waits. A replica learns of the
    /// alarm at its promotion.
    pub fn set_alarm(&mut self, now: Now, has_alarm: bool) {
        if let Some(vhost) = self.contents.serving_mut()
            && vhost.has_alarm() != has_alarm
        {
            vhost.set_alarm(now, has_alarm);
        }
    }

    // ---- log ----

    /// Takes the first batch of records that waits into `batch`, which must be empty. True if more wait.
    pub fn take_batch(&mut self, batch: &mut WriteBatch) -> bool {
        let has_more = self.outputs.log.take_batch(batch);
        if !has_more {
            // The records that ended with pages are known to the log once the last batch is written.
            self.outputs.pages.batch_taken();
        }
        has_more
    }

    /// Takes the news that the last batch that was taken is durable, and on a majority. Returns the last position of the log
    /// that is durable; 0 after a batch that only ended references.
    pub fn batch_durable(&mut self, written: Written) -> Lsn {
        let last = Lsn(written.durable.0);
        serving(&mut self.contents).durable(last);
        if let Some(committed) = &mut self.committed {
            *committed = last.max(*committed);
        }
        self.replies.extend(self.outputs.take_durable(last));
        self.outputs.pages.batch_written();
        last
    }

    // ---- pages ----

    /// Takes the page tasks that wait.
    pub fn take_page_tasks(&mut self) -> Vec<PageTask> {
        self.outputs.pages.take()
    }

    /// Takes the messages that were read from a page.
    pub fn page_read(&mut self, now: Now, at: PageLocation, read: PageRead) {
        serving(&mut self.contents).page_read(now, at, read);
    }

    /// True while records of dropped pages have not ended in the log: until then the log must not be compacted, because it does
    /// not know yet which records a purge or deletion has ended.
    pub fn has_ending_pages(&self) -> bool {
        self.outputs.pages.is_ending()
    }

    /// Takes the positions of the messages that left their queue together with their page.
    pub fn page_ended(&mut self, lsns: &[Lsn]) {
        lsns.iter().for_each(|lsn| self.outputs.log.release(*lsn));
        self.outputs.pages.page_ended();
    }

    // ---- the group ----

    /// Applies a committed entry of another leader; `apply` passes its records on. Returns the last position, if the entry has
    /// records. Does nothing once the contents are given up: the thread that applies entries ends after those that it has, and
    /// the log that is opened anew has them.
    ///
    /// # Errors
    /// The reason why the replica differs from that of the leader; it must be rebuilt.
    ///
    /// # Panics
    /// If this node leads.
    pub fn apply_entry(
        &mut self,
        entry: &LogEntry,
        apply: impl FnOnce(EntrySink<'_>) -> Result<(), String>,
    ) -> Result<Option<Lsn>, String> {
        let replay = match &mut self.contents {
            Contents::Follows(replay) => replay,
            Contents::GivenUp(_) => return Ok(None),
            Contents::Leads(vhost) => {
                panic!("vhost '{}' leads and gets entries of another leader", vhost.name())
            }
        };
        replay.set_now(Time::from_micros(entry.axis_us));
        let mut problem = None;
        let applied = apply(&mut |record, ended| {
            if problem.is_none() {
                let failed = replay.apply(record, ended).err();
                problem = failed.map(|why| format!("record {}: {why}", record.lsn));
            }
        });
        if let Some(problem) = problem {
            return Err(problem);
        }
        applied?;
        match &entry.content {
            EntryContent::Records(records) => {
                let last = Lsn(records.last.0);
                replay.end_entry(last).map_err(|divergence| divergence.to_string())?;
                self.committed = Some(last);
                Ok(Some(last))
            }
            EntryContent::Empty => {
                replay.begin_term();
                Ok(None)
            }
            EntryContent::Membership(_) => Ok(None),
        }
    }

    /// Makes a vhost of the replica, which has applied everything up to `last` and continues from `now`; `prepare` gets the
    /// vhost first. Does nothing once the contents are given up.
    ///
    /// # Errors
    /// If a page could not be written or read.
    ///
    /// # Panics
    /// If this node leads already.
    pub fn promote(
        &mut self,
        now: Now,
        last: Lsn,
        prepare: impl FnOnce(&mut Vhost),
    ) -> Result<(), P::Error> {
        if matches!(self.contents, Contents::GivenUp(_)) {
            return Ok(());
        }
        let vhost = self.contents.promote(now, last)?;
        prepare(vhost);
        vhost.log_digest(now);
        self.committed = Some(last);
        Ok(())
    }

    /// Logs a digest of the durable state, which the replicas compare with theirs. False if this node does not lead.
    pub fn log_digest(&mut self, now: Now) -> bool {
        let Contents::Leads(vhost) = &mut self.contents else { return false };
        vhost.log_digest(now);
        true
    }

    /// Does the part of the vhost in a planned change of the leader. False if this node does not lead.
    pub fn hand_over(&mut self, now: Now, task: HandOverTask) -> bool {
        let Contents::Leads(vhost) = &mut self.contents else { return false };
        match task {
            HandOverTask::Halt => {
                vhost.hand_over(now);
                self.is_frozen = true;
            }
            HandOverTask::KeepLeading => vhost.keep_leading(now),
            HandOverTask::Resume => {
                vhost.deliver_again(now);
                self.is_frozen = false;
            }
        }
        true
    }

    /// Closes every connection because of `refusal`, and every later one. False if there are none, because this node follows.
    pub fn stop(&mut self, now: Now, refusal: &Refusal) -> bool {
        self.shutdown = Some(refusal.clone());
        let Some(vhost) = self.contents.serving_mut() else { return false };
        close_all(vhost, now, refusal);
        true
    }

    /// Drops what waits, and takes the contents away: nothing of the vhost is answered or written any more. Returns them, which
    /// may take long to drop, and the clients with something new in their outboxes.
    pub fn give_up(&mut self, refusal: &Refusal) -> (Contents<P>, Vec<ConnectionId>) {
        self.replies.clear();
        self.is_frozen = false;
        (self.contents.give_up(), self.outputs.abandon(refusal))
    }

    /// Ends a batch: sends the answers that have waited for the log, applies all effects, and frees what a majority has.
    ///
    /// # Panics
    /// If this node follows.
    pub fn end_batch<S: Surroundings>(&mut self, surroundings: &mut S) -> Batch {
        let Self { contents, outputs, committed, replies, .. } = self;
        outputs.end_batch(serving(contents), replies.drain(..), *committed, surroundings)
    }
}

/// The vhost that clients use.
fn serving<P: ReplayPages>(contents: &mut Contents<P>) -> &mut Vhost {
    contents.serving_mut().expect("a vhost has clients only on the node that leads it")
}
