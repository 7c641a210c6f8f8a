//! The vhost of a node, and the ends of its clients: what the server has behind the lock of a vhost.

use amqp::method::BasicAck;
use amqp::reply_code::ReplyCode;
use broker::page::{PageLocation, PageRead};
use broker::refusal::Refusal;
use broker::time::{Now, Time};
use broker::{Command, ConnectionId, Lsn, Request, ScheduleTarget, ScheduledFilter, Vhost};
use replica::{ClientEnd, Contents, HandOverTask, LocalVhost, LogReplay, Ticked, Wait};
use session::{Outbox, Session, Step};
use storage::Written;

use crate::clients::handshake::{FRAME_MAX, adopted_session, everything, frame, session};
use crate::clients::operations::{OPERATIONS_CHANNEL, cancel};
use crate::clients::topology::SCHEDULE_QUEUE;
use crate::cluster::content::effects::Sabotaged;
use crate::cluster::content::pages::SimPages;
use crate::cluster::content::skipping::Skipping;
use crate::faults::sabotage::Sabotage;

/// The calls of a hundred that find the lock of the vhost held by others.
pub(crate) const BUSY_PERCENT: u64 = 5;

/// Commands that are applied at once.
const COMMANDS_MAX: usize = 64;

/// Work after which others have a turn; little, so that batches often have a rest.
const WORK_PER_LOCK: u64 = 20;

/// The end of a client's connection, with the client's octets that wait for their turn.
#[derive(Debug)]
pub(crate) struct SimEnd {
    pub(crate) client: usize,
    session: Session,
    input: Vec<u8>,
    free: Outbox,
    /// The event that the answer to the last command waits for.
    wait: Option<Wait>,
    is_closing: bool,
    is_stalled: bool,
    /// Operations that a sabotage has answered.
    operations: u64,
}

impl ClientEnd for SimEnd {
    fn frame_max(&self) -> u32 {
        FRAME_MAX
    }

    fn append<T>(&mut self, append: impl FnOnce(&mut Outbox) -> T) -> T {
        append(&mut self.free)
    }

    fn set_closing(&mut self) {
        self.is_closing = true;
    }

    fn is_closing(&self) -> bool {
        self.is_closing
    }

    fn set_stalled(&mut self) {
        self.is_stalled = true;
    }

    /// Sockets take everything at once.
    fn unsent(&self) -> u64 {
        0
    }
}

/// Octets that leave for a client.
#[derive(Debug)]
pub(crate) struct Departed {
    pub(crate) client: usize,
    pub(crate) connection: ConnectionId,
    pub(crate) bytes: Vec<u8>,
    /// The connection is over behind them.
    pub(crate) is_last: bool,
}

/// The vhost of a node.
#[derive(Debug)]
pub(crate) struct Serving {
    pub(crate) local: LocalVhost<SimEnd, SimPages>,
    pub(crate) pages: SimPages,
    pub(crate) skipping: Skipping,
    /// Octets that leave, in order.
    pub(crate) departed: Vec<Departed>,
    /// Connections whose sockets report that they have room.
    pub(crate) stalled: Vec<ConnectionId>,
    /// True once the replicator must take records.
    pub(crate) wakes: bool,
    /// True once the pager must take tasks.
    pub(crate) wakes_pager: bool,
    pub(crate) sabotage: Option<Sabotage>,
}

impl Serving {
    pub(crate) fn new(
        replay: LogReplay<SimPages>,
        pages: SimPages,
        committed: Lsn,
        skipping: Skipping,
        sabotage: Option<Sabotage>,
    ) -> Self {
        Self {
            local: LocalVhost::of_group(Contents::Follows(Box::new(replay)), committed),
            pages,
            skipping,
            departed: Vec::new(),
            stalled: Vec::new(),
            wakes: false,
            wakes_pager: false,
            sabotage,
        }
    }

    /// The vhost, if the node leads it.
    pub(crate) fn leading(&mut self) -> Option<&mut Vhost> {
        if self.local.is_leading() { self.local.leading_mut() } else { None }
    }

    /// The position up to which a majority has the log.
    pub(crate) fn committed(&self) -> Lsn {
        self.local.committed().expect("the vhost of a group knows what a majority has")
    }

    /// Opens a connection of a client. `None` if the node does not lead the vhost.
    pub(crate) fn connect(&mut self, client: usize, now: Now) -> Option<ConnectionId> {
        if !self.local.is_leading() {
            return None;
        }
        Some(self.open(client, session(now.time), now))
    }

    /// Opens the connection of a client that another node has shaken hands with. `None` if the node does not lead the vhost.
    pub(crate) fn adopt(
        &mut self,
        client: usize,
        entry: &Session,
        now: Now,
    ) -> Option<ConnectionId> {
        if !self.local.is_leading() {
            return None;
        }
        let (session, bytes) = adopted_session(entry, now.time);
        let connection = self.open(client, session, now);
        self.departed.push(Departed { client, connection, bytes, is_last: false });
        Some(connection)
    }

    fn open(&mut self, client: usize, session: Session, now: Now) -> ConnectionId {
        let end = SimEnd {
            client,
            session,
            input: Vec::new(),
            free: Outbox::default(),
            wait: None,
            is_closing: false,
            is_stalled: false,
            operations: 0,
        };
        self.local.open(now, "client", everything(), true, Some(end))
    }

    /// The client is gone.
    pub(crate) fn disconnect(&mut self, connection: ConnectionId, now: Now) {
        if self.local.clients().get(connection).is_some() {
            self.local.close(now, connection);
            self.finish(now);
        }
    }

    /// Octets of a client.
    pub(crate) fn receive(&mut self, connection: ConnectionId, bytes: &[u8], now: Now) {
        let Some(link) = self.local.clients_mut().get_mut(connection) else { return };
        link.end.input.extend_from_slice(bytes);
        self.process(connection, now);
    }

    /// Applies the commands of a client, up to the first whose answer waits.
    fn process(&mut self, connection: ConnectionId, now: Now) {
        loop {
            if self.local.is_frozen() || !self.local.is_leading() {
                return;
            }
            let committed = self.committed();
            let is_page_awaited = self.local.vhost().awaits_get(connection);
            let Some(link) = self.local.clients_mut().get_mut(connection) else { return };
            let link = &mut link.end;
            match link.wait.take() {
                Some(Wait::Log(lsn)) if lsn > committed => {
                    link.wait = Some(Wait::Log(lsn));
                    return;
                }
                Some(Wait::Page(_)) if is_page_awaited => {
                    link.wait = Some(Wait::Page(connection));
                    return;
                }
                Some(Wait::Log(_) | Wait::Page(_)) | None => {}
            }
            let taken = std::mem::take(&mut link.input);
            let mut input = taken.as_slice();
            let mut requests: Vec<Request<'_>> = Vec::new();
            let mut out = Vec::new();
            while requests.len() < COMMANDS_MAX {
                match link.session.next(&mut input, &mut out) {
                    Step::Request(request) => {
                        let may_wait = request.command.may_wait();
                        requests.push(request);
                        if may_wait {
                            break;
                        }
                    }
                    Step::More | Step::Over => break,
                    step => panic!("a client of the simulation asks for {step:?}"),
                }
            }
            if requests.is_empty() {
                link.input = input.to_vec();
                return;
            }
            let rest = input.to_vec();
            let is_operation = |request: &&Request<'_>| {
                request.channel.0 == OPERATIONS_CHANNEL
                    && matches!(request.command, Command::Publish(_))
            };
            let operations = requests.iter().filter(is_operation).count();
            let mut requests = requests.into_iter();
            let mut wait = None;
            while requests.len() > 0 {
                self.local.apply(now, connection, &mut requests, WORK_PER_LOCK);
                wait = self.finish(now);
            }
            if self.sabotage == Some(Sabotage::OperationAnsweredEarly) {
                self.answer_operations(connection, operations);
            }
            if let Some(link) = self.local.clients_mut().get_mut(connection) {
                link.end.input = rest;
                link.end.wait = wait;
            }
        }
    }

    /// A sabotage: answers the next operations of a client.
    fn answer_operations(&mut self, connection: ConnectionId, count: usize) {
        let Some(link) = self.local.clients_mut().get_mut(connection) else { return };
        for _ in 0..count {
            link.end.operations += 1;
            let ack = BasicAck { delivery_tag: link.end.operations, multiple: false };
            let bytes = frame(OPERATIONS_CHANNEL, ack);
            let client = link.end.client;
            self.departed.push(Departed { client, connection, bytes, is_last: false });
        }
    }

    /// A sabotage: drops a message that waits.
    pub(crate) fn forget_schedule(&mut self, now: Now) {
        let access = everything();
        let Some(vhost) = self.leading() else { return };
        let target = Some(ScheduleTarget::Queue(SCHEDULE_QUEUE.into()));
        let filter = ScheduledFilter { target, ..ScheduledFilter::default() };
        let waiting = vhost.scheduled_messages(&filter, &access, None, 1);
        for message in waiting.messages {
            let request = cancel(message);
            let dropped = vhost.operate_on_schedules(now, &request, &access);
            assert!(dropped.is_ok(), "the message waits");
            vhost.drain_effects();
        }
    }

    /// Every client goes on that has waited.
    fn process_all(&mut self, now: Now) {
        let waiting = self.connections();
        waiting.into_iter().for_each(|connection| self.process(connection, now));
    }

    /// The sockets of stalled connections have taken everything: each report is a batch of its own.
    pub(crate) fn sockets_have_room(&mut self, now: Now) {
        for connection in std::mem::take(&mut self.stalled) {
            if self.local.clients().get(connection).is_some() {
                self.local.report_backlog(now, connection, 0);
                self.finish(now);
            }
        }
    }

    /// Does what is due, with or without an alarm. False if it has to wait, because the lead is being handed over.
    pub(crate) fn tick(&mut self, now: Now, has_alarm: bool) -> bool {
        while self.local.is_leading() {
            match self.local.tick(now, has_alarm) {
                Ticked::Follows => return true,
                Ticked::Frozen => return false,
                Ticked::Done { has_more } => {
                    self.finish(now);
                    if !has_more {
                        return true;
                    }
                }
            }
        }
        true
    }

    pub(crate) fn next_wake(&mut self) -> Option<Time> {
        self.leading()?.next_wake()
    }

    /// A change of the vhost from within the node.
    pub(crate) fn write(&mut self, now: Now, change: impl FnOnce(&mut Vhost)) {
        if let Some(vhost) = self.leading() {
            change(vhost);
            self.finish(now);
        }
    }

    /// Logs a digest.
    pub(crate) fn log_digest(&mut self, now: Now) {
        if self.local.log_digest(now) {
            self.finish(now);
        }
    }

    /// Does the part of the vhost in a planned change of the leader.
    pub(crate) fn hand_over(&mut self, now: Now, task: HandOverTask) {
        if self.local.hand_over(now, task) {
            self.finish(now);
            if !self.local.is_frozen() {
                self.process_all(now);
            }
        }
    }

    /// A majority has the last batch.
    pub(crate) fn batch_durable(&mut self, written: Written, now: Now) {
        if self.local.is_leading() {
            self.local.batch_durable(written);
            self.finish(now);
            self.process_all(now);
        }
    }

    /// Messages were read from a page.
    pub(crate) fn page_read(&mut self, now: Now, at: PageLocation, read: PageRead) {
        if self.local.is_leading() {
            self.local.page_read(now, at, read);
            self.finish(now);
            self.process_all(now);
        }
    }

    /// Messages have left their queue together with their page.
    pub(crate) fn page_ended(&mut self, now: Now, lsns: &[Lsn]) {
        if self.local.is_leading() {
            self.local.page_ended(lsns);
            self.finish(now);
        }
    }

    /// Makes a vhost of the replica, which has applied everything up to `last`.
    pub(crate) fn promote(&mut self, now: Now, last: storage::Lsn, has_alarm: bool) {
        let promoted =
            self.local.promote(now, Lsn(last.0), |vhost| vhost.set_alarm(now, has_alarm));
        promoted.expect("the disk of pages has no faults");
        self.finish(now);
    }

    /// Closes all clients and gives the contents up.
    pub(crate) fn depose(&mut self, now: Now) {
        let refusal = Refusal::new(ReplyCode::ConnectionForced, "the leader has changed");
        if self.local.is_leading() {
            if self.sabotage == Some(Sabotage::SendHeldWhenDeposed) {
                let last = self.local.vhost().last_lsn();
                self.local.clients_mut().release(last, Lsn(u64::MAX), &mut |_, _, _| ());
            }
            self.local.stop(now, &refusal);
            self.finish(now);
        }
        self.local.give_up(&refusal);
        self.depart(now);
        for connection in self.connections() {
            if let Some(end) = self.local.clients_mut().remove(connection) {
                self.departed.push(Departed {
                    client: end.client,
                    connection,
                    bytes: Vec::new(),
                    is_last: true,
                });
            }
        }
    }

    fn connections(&self) -> Vec<ConnectionId> {
        self.local.clients().iter().map(|(connection, _)| connection).collect()
    }

    /// Ends a batch. Returns the event that the answer to the last command waits for.
    fn finish(&mut self, now: Now) -> Option<Wait> {
        let mut surroundings = Sabotaged { sabotage: self.sabotage, now };
        let batch = self.local.end_batch(&mut surroundings);
        for connection in batch.touched {
            let Some(link) = self.local.clients_mut().get_mut(connection) else { continue };
            if std::mem::take(&mut link.end.is_stalled) {
                self.stalled.push(connection);
            }
        }
        self.wakes |= batch.wakes_writer;
        self.wakes_pager |= batch.wakes_pager;
        self.depart(now);
        batch.wait
    }

    /// Takes what leaves for the clients.
    fn depart(&mut self, now: Now) {
        let mut closed = Vec::new();
        for connection in self.connections() {
            let Some(link) = self.local.clients_mut().get_mut(connection) else { continue };
            let bytes = take(&mut link.end.free);
            if bytes.is_empty() {
                continue;
            }
            let (client, is_last) = (link.end.client, link.end.is_closing);
            if is_last {
                closed.push(connection);
            }
            self.departed.push(Departed { client, connection, bytes, is_last });
        }
        for connection in closed {
            self.disconnect(connection, now);
        }
    }
}

/// Takes everything that is free.
fn take(free: &mut Outbox) -> Vec<u8> {
    let mut bytes = Vec::new();
    while !free.is_empty() {
        let mut slices = [std::io::IoSlice::new(&[]); 8];
        let filled = free.slices(&mut slices);
        let before = bytes.len();
        slices.iter().take(filled).for_each(|slice| bytes.extend_from_slice(slice));
        free.consume(bytes.len() - before);
    }
    bytes
}
