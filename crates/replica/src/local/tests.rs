//! Tests of a vhost with its clients, driven by hand.

use super::*;
use crate::clients::test_client::Client;
use crate::pages::NoPages;
use amqp::method::MethodId;
use amqp::reply_code::ReplyCode;
use broker::page::{EndedMessages, PageMembers};
use broker::{ChannelNumber, Command, Effect, Outgoing, PageId, VhostOptions};

const NOW: Now = Now::from_millis(1_000);

struct Node;

impl Surroundings for Node {
    type Effects<'v> = std::vec::Drain<'v, Effect>;

    fn effects<'v>(&self, vhost: &'v mut Vhost) -> Self::Effects<'v> {
        vhost.drain_effects()
    }

    fn send_internal(&mut self, _: ConnectionId, _: Outgoing) {}

    fn page_task(&mut self, _: &PageTask) {}

    fn now(&self) -> Now {
        NOW
    }
}

type Local = LocalVhost<Client, NoPages>;

fn vhost() -> Vhost {
    Vhost::new(
        "/",
        [1; 32],
        VhostOptions { delivers_after_commit: true, ..VhostOptions::default() },
    )
}

fn leading() -> Local {
    LocalVhost::of_group(Contents::Leads(Box::new(vhost())), Lsn(0))
}

fn open(local: &mut Local) -> ConnectionId {
    let access = Arc::new(Access::matching("guest".into(), ".*").unwrap());
    local.open(NOW, "client", access, true, Some(Client::default()))
}

fn unsent(local: &Local, connection: ConnectionId) -> u64 {
    local.clients().get(connection).expect("the client is there").end.unsent()
}

fn refusal() -> Refusal {
    Refusal::new(ReplyCode::ConnectionForced, "stops")
}

#[test]
fn commands_are_answered_by_the_batch_that_ends_them() {
    let mut local = leading();
    let client = open(&mut local);
    let open = Request {
        channel: ChannelNumber(1),
        method: MethodId::NONE,
        command: Command::OpenChannel,
    };
    assert!(!local.apply(NOW, client, &mut std::iter::once(open), 1_000_000));
    assert_eq!(unsent(&local, client), 0, "the batch has not ended");
    let batch = local.end_batch(&mut Node);
    assert_eq!(batch.touched.as_slice(), [client]);
    assert!(unsent(&local, client) > 0);
}

#[test]
fn due_work_waits_while_another_node_is_to_lead() {
    let mut local = leading();
    assert_eq!(local.tick(NOW, false), Ticked::Done { has_more: false });
    assert!(local.hand_over(NOW, HandOverTask::Halt));
    local.end_batch(&mut Node);
    assert!(local.is_frozen());
    assert_eq!(local.tick(NOW, true), Ticked::Frozen);
    assert!(!local.vhost().has_alarm(), "the alarm begins when the vhost goes on");
    assert!(local.hand_over(NOW, HandOverTask::KeepLeading));
    local.end_batch(&mut Node);
    assert_eq!(local.tick(NOW, false), Ticked::Frozen, "until what was halted goes on");
    assert!(local.hand_over(NOW, HandOverTask::Resume));
    local.end_batch(&mut Node);
    assert_eq!(local.tick(NOW, false), Ticked::Done { has_more: false });
}

#[test]
fn replica_has_no_work_of_its_own() {
    let replay = LogReplay::new(vhost(), Time::MAX, NoPages);
    let mut local = Local::of_group(Contents::Follows(Box::new(replay)), Lsn(0));
    assert!(local.is_following());
    assert_eq!(local.tick(NOW, false), Ticked::Follows);
    assert!(!local.hand_over(NOW, HandOverTask::Halt));
    assert!(!local.log_digest(NOW));
    assert!(!local.stop(NOW, &refusal()), "no clients are closed");
}

#[test]
fn batch_without_records_tells_the_pages_that_ended() {
    let mut local = leading();
    let ended = Some(EndedMessages::Members(PageMembers::default()));
    local.outputs.pages.push(PageTask::Drop { page: PageId(1), ended });
    assert!(local.has_ending_pages());
    let mut batch = WriteBatch::default();
    local.page_ended(&[]);
    assert!(!local.take_batch(&mut batch));
    assert!(batch.is_empty() && local.has_ending_pages(), "the log does not know it yet");
    let written = Written { durable: storage::Lsn(0), bytes: 0, records: 0 };
    assert_eq!(local.batch_durable(written), Lsn(0));
    assert!(!local.has_ending_pages());
    assert_eq!(local.batch_durable(written), Lsn(0));
}

#[test]
fn committed_position_never_goes_back() {
    let mut local = leading();
    let mut durable = |position| {
        let written = Written { durable: storage::Lsn(position), bytes: 0, records: 0 };
        local.batch_durable(written);
        local.committed()
    };
    assert_eq!(durable(7), Some(Lsn(7)));
    assert_eq!(durable(0), Some(Lsn(7)), "a batch without records");
    let alone = Local::alone(Contents::Leads(Box::new(vhost())));
    assert_eq!(alone.committed(), None);
}

#[test]
fn connection_that_is_opened_while_the_broker_stops_is_closed() {
    let mut local = leading();
    assert!(local.stop(NOW, &refusal()));
    local.end_batch(&mut Node);
    assert!(local.is_closing());
    let client = open(&mut local);
    local.end_batch(&mut Node);
    let link = local.clients().get(client).expect("the client is there");
    assert!(link.end.is_closing);
}

#[test]
fn vhost_that_is_given_up_is_empty_for_all_that_comes_late() {
    let mut local = leading();
    let client = open(&mut local);
    local.end_batch(&mut Node);
    local.hand_over(NOW, HandOverTask::Halt);
    local.stop(NOW, &refusal());
    local.end_batch(&mut Node);
    let (contents, _) = local.give_up(&refusal());
    assert!(matches!(contents, Contents::Leads(_)));
    assert!(!local.is_leading() && !local.is_following() && !local.is_frozen());
    assert_eq!(local.vhost().connections().count(), 0);
    local.report_backlog(NOW, client, 5);
    assert!(local.close(NOW, client).is_some());
    assert!(!local.log_digest(NOW));
    let batch = local.end_batch(&mut Node);
    assert!(batch.touched.is_empty() && !batch.wakes_writer);
}

/// The thread that applies entries ends after the jobs that it has.
#[test]
fn entries_and_promotions_that_come_late_are_left_to_the_log() {
    let replay = LogReplay::new(vhost(), Time::MAX, NoPages);
    let mut local = Local::of_group(Contents::Follows(Box::new(replay)), Lsn(0));
    local.give_up(&refusal());
    let (index, term) = (storage::EntryIndex(1), storage::Term(1));
    let entry = LogEntry { index, term, axis_us: 0, content: EntryContent::Empty };
    let mut is_applied = false;
    let applied = local.apply_entry(&entry, |_| {
        is_applied = true;
        Ok(())
    });
    assert!(applied == Ok(None) && !is_applied);
    let Ok(()) = local.promote(NOW, Lsn(0), |_| panic!("it is given up"));
    assert!(!local.is_leading());
}

#[test]
fn promotion_prepares_the_vhost_and_logs_a_digest() {
    let mut replay = LogReplay::new(vhost(), Time::MAX, NoPages);
    replay.follow(Lsn(0)).expect("nothing is missing");
    let mut local = Local::of_group(Contents::Follows(Box::new(replay)), Lsn(0));
    let mut is_prepared = false;
    let Ok(()) = local.promote(NOW, Lsn(0), |_| is_prepared = true);
    assert!(is_prepared && local.is_leading());
    assert!(local.end_batch(&mut Node).wakes_writer, "the digest waits for the log");
}
