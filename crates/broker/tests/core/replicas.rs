//! Replicas of a vhost: held deliveries, digests that find a difference, and the loss of what was not committed.

use std::collections::BTreeMap;
use std::sync::Arc;

use amqp::method::MethodId;
use amqp::properties::Properties;
use amqp::table::{Table, TableBuilder, Value};
use broker::access::Access;
use broker::time::{Now, Time};
use broker::{
    Bind, ChannelNumber, Command, ConnectionId, Consume, Content, DeclareExchange, DeleteQueue,
    DeliveryTag, Divergence, Effect, Outcome, Outgoing, PolicyKind, Publish, Record, RedriveId,
    Replay, Request, Vhost, VhostOptions,
};

use crate::commands::{declare_queue, queue_policy};
use crate::disk::{Follower, PageStore, replicated};

/// The leader of a vhost with one client, and its replicas.
struct Leader {
    vhost: Vhost,
    connection: ConnectionId,
    now_ms: u64,
    replicas: Vec<Follower>,
    /// Problems that the replicas have reported.
    divergences: Vec<Divergence>,
    /// The last batches are not committed.
    is_cut_off: bool,
}

/// The part of a batch that a client sees, as words.
type Said = Vec<String>;

impl Leader {
    fn new(replicas: Vec<Follower>) -> Self {
        Self::with(Vhost::new("/", [3; 32], replicated()), 1_000_000, replicas)
    }

    fn with(mut vhost: Vhost, now_ms: u64, replicas: Vec<Follower>) -> Self {
        let access = Access::matching("guest".into(), ".*").unwrap();
        let connection = vhost.open_connection(Arc::new(access), true);
        let divergences = Vec::new();
        let mut leader =
            Self { vhost, connection, now_ms, replicas, divergences, is_cut_off: false };
        leader.apply(Command::OpenChannel);
        leader.apply(Command::ConfirmSelect { nowait: true });
        leader
    }

    fn now(&self) -> Now {
        // The wall clock is six minutes behind the axis.
        Now { time: Time::from_millis(self.now_ms), wall_us: (self.now_ms - 360_000) * 1000 }
    }

    fn apply(&mut self, command: Command<'_>) -> Said {
        let request = Request { channel: ChannelNumber(1), method: MethodId::NONE, command };
        self.vhost.apply(self.now(), self.connection, request);
        self.finish()
    }

    /// Ends a batch, which is an entry of the log.
    fn finish(&mut self) -> Said {
        if !self.is_cut_off {
            self.vhost.durable(self.vhost.last_lsn());
        }
        self.vhost.flush();
        let mut said = Vec::new();
        for effect in self.vhost.drain_effects() {
            if !self.is_cut_off {
                self.replicas.iter_mut().for_each(|replica| replica.write(&effect));
            }
            said.extend(match effect {
                Effect::Hold(_) => Some("hold".to_owned()),
                Effect::Send { outgoing, .. } => Some(told(&outgoing)),
                Effect::SendDurable { outgoing, .. } => Some(format!("later {}", told(&outgoing))),
                _ => None,
            });
        }
        let axis = self.now().time;
        if !self.is_cut_off {
            let applied = self.replicas.iter_mut().map(|replica| replica.end_entry(axis));
            self.divergences.extend(applied.filter_map(Result::err));
        }
        said
    }

    fn digest(&mut self) {
        self.vhost.log_digest(self.now());
        self.finish();
    }

    fn sleep(&mut self, millis: u64) -> Said {
        self.now_ms += millis;
        let mut said = Vec::new();
        while self.vhost.next_wake().is_some_and(|wake| wake <= self.now().time) {
            self.vhost.tick(self.now());
            said.extend(self.finish());
        }
        said
    }

    /// The first replica leads, and the others follow it.
    fn fail_over(mut self, is_planned: bool) -> Self {
        if is_planned {
            self.vhost.hand_over(self.now());
            self.finish();
        }
        self.replicas.iter_mut().for_each(Follower::begin_term);
        let (vhost, _) = self.replicas.remove(0).take_over(self.now());
        let mut leader = Self::with(vhost, self.now_ms, self.replicas);
        leader.sleep(0);
        leader
    }

    fn declare(&mut self, queue: &str, queue_type: &[u8], more: &[(&str, Value<'_>)]) {
        let mut arguments = TableBuilder::new();
        arguments.insert("x-queue-type", Value::LongStr(queue_type));
        more.iter().for_each(|(key, value)| {
            arguments.insert(key, *value);
        });
        let arguments: Table = arguments.finish();
        self.apply(declare_queue(queue, &arguments));
    }

    /// Sets a policy, whose record is in the next batch.
    fn set_policy(&mut self, max_length: i64) {
        let policy = queue_policy("p", "dead", "max-length", max_length);
        self.vhost.set_policy(self.now(), PolicyKind::User, policy);
    }

    fn publish(&mut self, queue: &str, body: &str) -> Said {
        self.publish_with(queue, body, Properties::default())
    }

    fn publish_with(&mut self, queue: &str, body: &str, properties: Properties<'_>) -> Said {
        let mut encoded = Vec::new();
        Properties { delivery_mode: Some(2), ..properties }.encode(&mut encoded);
        self.apply(Command::Publish(Publish {
            exchange: b"".into(),
            routing_key: queue.as_bytes().into(),
            mandatory: false,
            content: Content::Assembled {
                properties: encoded.into(),
                body: body.as_bytes().to_vec().into(),
            },
        }))
    }

    fn consume(&mut self, queue: &str, no_ack: bool) -> Said {
        self.apply(Command::Consume(Consume {
            queue,
            consumer_tag: queue,
            no_ack,
            exclusive: false,
            nowait: true,
            arguments: Table::default().as_ref(),
        }))
    }

    fn settle(&mut self, tag: u64, outcome: Outcome) -> Said {
        self.apply(Command::Settle { tag: DeliveryTag(tag), multiple: false, outcome })
    }

    fn get(&mut self, queue: &str) -> Said {
        self.apply(Command::Get { queue, no_ack: false })
    }
}

fn told(outgoing: &Outgoing) -> String {
    let told = |delivery: &broker::Delivery| {
        let again = if delivery.redelivered { " again" } else { "" };
        format!("{}{again}", String::from_utf8_lossy(delivery.message.body()))
    };
    match outgoing {
        Outgoing::Deliver { delivery, .. } | Outgoing::GetOk { delivery, .. } => told(delivery),
        Outgoing::Ack { seq, .. } => format!("confirm {seq}"),
        Outgoing::GetEmpty => "empty".to_owned(),
        other => format!("{other:?}"),
    }
}

const NOTHING: [(&str, Value<'_>); 0] = [];

#[test]
fn deliveries_of_quorum_queues_and_redeliveries_are_held() {
    let mut leader = Leader::new(Vec::new());
    leader.declare("quorum", b"quorum", &NOTHING);
    leader.declare("classic", b"classic", &NOTHING);
    assert_eq!(leader.publish("quorum", "a"), ["confirm 1"].map(str::to_owned));
    assert_eq!(leader.get("quorum"), ["hold", "a"]);
    leader.publish("quorum", "b");
    leader.publish("quorum", "c");
    // Once in a batch.
    assert_eq!(leader.consume("quorum", true), ["hold", "b", "c"]);
    assert_eq!(leader.publish("quorum", "d"), ["hold", "d", "confirm 4"]);
    leader.publish("classic", "e");
    assert_eq!(leader.get("classic"), ["e"]);
    assert_eq!(leader.get("quorum"), ["empty"]);
    // The first delivery may be held behind others of its connection.
    leader.settle(5, Outcome::Requeue { failed: false });
    assert_eq!(leader.get("classic"), ["hold", "e again"]);
    // A lone node holds nothing.
    let vhost = Vhost::new("/", [3; 32], VhostOptions::default());
    let mut lone = Leader::with(vhost, 1_000_000, Vec::new());
    lone.declare("quorum", b"quorum", &NOTHING);
    lone.publish("quorum", "a");
    assert_eq!(lone.get("quorum"), ["a"]);
    lone.digest();
    assert_eq!(lone.vhost.queue_digests(), []);
}

#[test]
fn hold_comes_while_the_firehose_is_on_and_after_it() {
    let mut leader = Leader::new(Vec::new());
    leader.declare("quorum", b"quorum", &NOTHING);
    for is_on in [true, false] {
        leader.vhost.set_tracing(is_on);
        leader.publish("quorum", "a");
        assert_eq!(leader.get("quorum"), ["hold", "a"], "{is_on}");
    }
}

/// All commands of a client, with each kind of record that changes what a digest tells.
fn eventful_history(leader: &mut Leader) {
    let dead = [
        ("x-dead-letter-exchange", Value::LongStr(b"")),
        ("x-dead-letter-routing-key", Value::LongStr(b"dead")),
    ];
    leader.declare("dead", b"classic", &NOTHING);
    leader.declare("work", b"quorum", &dead);
    leader.declare("gone", b"classic", &NOTHING);
    leader.apply(Command::DeclareExchange(DeclareExchange {
        exchange: "x",
        kind: "fanout",
        passive: false,
        durable: true,
        auto_delete: false,
        internal: false,
        nowait: true,
        arguments: Table::default().as_ref(),
    }));
    let arguments = Table::default();
    let bind = Bind {
        destination: "work",
        source: "x",
        routing_key: "",
        nowait: true,
        arguments: arguments.as_ref(),
    };
    leader.apply(Command::BindQueue(bind));
    leader.set_policy(100);
    leader.finish();
    for body in ["a", "b", "c"] {
        leader.publish("work", body);
    }
    let mut headers = TableBuilder::new();
    headers.insert("x-opt-delivery-delay", Value::I32(100));
    let headers: Table = headers.finish();
    let headers = Some(headers.as_ref());
    leader.publish_with("work", "later", Properties { headers, ..Properties::default() });
    leader.get("work");
    leader.settle(1, Outcome::Ack);
    leader.get("work");
    leader.settle(2, Outcome::Reject);
    leader.sleep(101);
    leader.publish("dead", "purged");
    leader.digest();
    leader.apply(Command::PurgeQueue { queue: "dead", nowait: true });
    leader.apply(Command::UnbindQueue(bind));
    leader.apply(Command::DeleteExchange { exchange: "x", if_unused: false, nowait: true });
    let (if_unused, if_empty, nowait) = (false, false, true);
    leader.apply(Command::DeleteQueue(DeleteQueue { queue: "gone", if_unused, if_empty, nowait }));
    leader.vhost.clear_policy(leader.now(), PolicyKind::User, "p");
    leader.finish();
    leader.digest();
}

#[test]
fn policy_and_redrive_that_change_and_end_within_an_entry_are_gone_at_replicas() {
    let mut leader = Leader::new(vec![Follower::new(replicated())]);
    let id = RedriveId(1);
    leader.set_policy(100);
    leader.vhost.set_redrive(leader.now(), id, Arc::new([1]));
    leader.finish();
    leader.set_policy(200);
    leader.vhost.clear_policy(leader.now(), PolicyKind::User, "p");
    leader.vhost.set_redrive(leader.now(), id, Arc::new([2]));
    leader.vhost.clear_redrive(leader.now(), id);
    leader.finish();
    leader.digest();
    assert!(leader.divergences.is_empty(), "{:?}", leader.divergences);
    let leader = leader.fail_over(false);
    assert_eq!(leader.vhost.policies().iter(PolicyKind::User).count(), 0);
    assert_eq!(leader.vhost.redrives().count(), 0);
}

#[test]
fn digest_finds_every_record_that_a_replica_misses() {
    let mut leader = Leader::new(vec![Follower::new(replicated())]);
    eventful_history(&mut leader);
    assert_eq!(leader.divergences, []);
    assert_eq!(leader.replicas[0].digests(), 2);

    let expected = [
        (1, Some("dead")),
        (2, Some("work")),
        (3, Some("dead")),
        (7, Some("dead")),
        (8, Some("work")),
        (9, Some("work")),
        (16, None),
        (17, None),
        (18, None),
        (19, None),
        (20, None),
        (21, None),
        (22, None),
        (23, None),
    ];
    for (kind, queue) in expected {
        let mut leader = Leader::new(vec![Follower::that_misses(replicated(), kind)]);
        eventful_history(&mut leader);
        let first = leader.divergences.first();
        let first = first.unwrap_or_else(|| panic!("a missing record of kind {kind} is not found"));
        assert_eq!(first.queue.as_deref(), queue, "kind {kind}: {first}");
        // A divergence is final.
        assert_eq!(leader.divergences.last(), Some(first), "kind {kind}");
    }
}

#[test]
#[should_panic(expected = "a replica that must be rebuilt is promoted")]
fn replica_that_has_diverged_is_not_promoted() {
    let mut leader = Leader::new(vec![Follower::that_misses(replicated(), 2)]);
    eventful_history(&mut leader);
    leader.fail_over(true);
}

#[test]
fn record_that_does_not_fit_is_refused() {
    let declared = |lsn: u64, replay: &mut Replay| {
        let bytes = [7, 1, b'q', 0, 0];
        let decoded = Record::decode(16, &bytes, &mut broker::Envelopes::default()).unwrap();
        replay.apply(broker::Lsn(lsn), decoded, false, &mut PageStore::default(), &mut |_| {})
    };
    let new = || {
        let vhost = Vhost::new("/", [3; 32], replicated());
        let mut replay = Replay::new(vhost, Time::default());
        replay.follow(broker::Lsn(5)).unwrap();
        replay
    };
    let mut replay = new();
    let error = declared(5, &mut replay).unwrap_err();
    assert_eq!(error.to_string(), "record 5: it comes after record 5");
    // Final, for a record that would fit, too.
    assert_eq!(declared(6, &mut replay).unwrap_err(), error);
    let mut replay = new();
    declared(6, &mut replay).unwrap();
    let error = declared(7, &mut replay).unwrap_err();
    assert_eq!(error.to_string(), "record 7: queue 'q': it is declared already");
    assert_eq!(error.queue.as_deref(), Some("q"));
}

#[test]
fn uncommitted_batch_is_forgotten_and_deliveries_of_classic_queues_are_marked() {
    let mut leader = Leader::new(vec![Follower::new(replicated())]);
    leader.declare("quorum", b"quorum", &NOTHING);
    leader.declare("classic", b"classic", &NOTHING);
    for queue in ["quorum", "classic"] {
        leader.publish(queue, "a");
        leader.publish(queue, "b");
    }
    leader.is_cut_off = true;
    // Nothing of this is committed. The delivery of the quorum queue is held, no publish is confirmed.
    assert_eq!(leader.publish("quorum", "lost"), [] as [&str; 0]);
    assert_eq!(leader.get("quorum"), ["hold", "a"]);
    assert_eq!(leader.get("classic"), ["a"]);
    leader.settle(2, Outcome::Ack);
    let mut leader = leader.fail_over(false);
    assert_eq!(leader.get("classic"), ["hold", "a again"]);
    assert_eq!(leader.get("classic"), ["hold", "b again"]);
    assert_eq!(leader.get("quorum"), ["hold", "a"]);
    assert_eq!(leader.get("quorum"), ["hold", "b"]);
    assert_eq!(leader.get("quorum"), ["empty"]);
    assert_eq!(leader.vhost.broken_invariants(), [] as [String; 0]);
}

#[test]
fn number_that_a_new_leader_gives_again_keeps_no_old_deadline() {
    let live = || Follower::new(replicated());
    let mut leader = Leader::new(vec![live(), live()]);
    leader.declare("q", b"classic", &NOTHING);
    let expiration = Some(&b"5000"[..]);
    leader.publish_with("q", "old", Properties { expiration, ..Properties::default() });
    // Its record names no number that was handed out.
    leader.apply(Command::Get { queue: "q", no_ack: true });
    // The next leader has read its own log, from which a compaction took the message.
    leader.replicas[0] = leader.replicas[0].read_back(&BTreeMap::new());
    let mut leader = leader.fail_over(true);
    leader.publish("q", "new");
    assert_eq!(leader.vhost.queue("q").unwrap().last_seq(), 1, "the number is given again");
    leader.digest();
    let mut leader = leader.fail_over(true);
    leader.sleep(6000);
    assert_eq!(leader.get("q"), ["new"]);
    assert_eq!(leader.vhost.broken_invariants(), [] as [String; 0]);
}

#[test]
fn ttl_and_delivery_time_follow_the_axis_whatever_the_wall_clock_says() {
    let mut leader = Leader::new(vec![Follower::new(replicated()), Follower::new(replicated())]);
    let ttl = [("x-message-ttl", Value::I32(1000))];
    leader.declare("q", b"classic", &ttl);
    leader.declare("later", b"classic", &NOTHING);
    leader.publish("q", "a");
    let mut headers = TableBuilder::new();
    let wall_ms = i64::try_from(leader.now().wall_ms()).unwrap();
    headers.insert("x-opt-delivery-time", Value::I64(wall_ms + 1000));
    let headers: Table = headers.finish();
    let headers = Some(headers.as_ref());
    leader.publish_with("later", "b", Properties { headers, ..Properties::default() });
    leader.sleep(400);
    let mut leader = leader.fail_over(true);
    leader.sleep(400);
    let mut leader = leader.fail_over(false);
    let waiting = |leader: &Leader, queue| leader.vhost.queue(queue).unwrap().ready_count();
    leader.sleep(199);
    assert_eq!((waiting(&leader, "q"), waiting(&leader, "later")), (1, 0), "too early");
    leader.sleep(1);
    assert_eq!((waiting(&leader, "q"), waiting(&leader, "later")), (0, 1), "too late");
}

/// A time in the log is never earlier than the real one, and less than a millisecond later.
#[test]
fn arrival_in_the_log_is_not_before_the_real_one() {
    for micros in [1_000_000_000, 1_000_000_001, 1_000_000_999, 1_000_001_000] {
        let time = Time::from_micros(micros);
        let now = Now { time, wall_us: 12_000 }.on_axis();
        let queue = broker::QueueNumber(1);
        let entry = broker::EntryId { seq: 1, level: 0 };
        let record = Record::Ready { queue, entry, to: entry };
        let mut bytes = Vec::new();
        record.encode(now, &mut bytes);
        let read = Record::decode(9, &bytes, &mut broker::Envelopes::default()).unwrap();
        assert!(read.arrived >= time && read.arrived < time.plus_ms(1), "{micros}");
    }
}

/// A leader with two replicas, whose classic queue `q` has delivered the first of two messages.
fn leader_that_has_delivered() -> Leader {
    let mut leader = Leader::new(vec![Follower::new(replicated()), Follower::new(replicated())]);
    leader.declare("q", b"classic", &NOTHING);
    leader.publish("q", "a");
    leader.publish("q", "b");
    assert_eq!(leader.get("q"), ["a"]);
    leader
}

#[test]
fn hand_over_marks_only_what_was_delivered() {
    let mut leader = leader_that_has_delivered().fail_over(true);
    assert_eq!(leader.get("q"), ["hold", "a again"]);
    assert_eq!(leader.get("q"), ["b"]);
}

#[test]
fn vhost_that_hands_over_delivers_nothing_until_it_goes_on() {
    let mut leader = leader_that_has_delivered();
    leader.vhost.hand_over(leader.now());
    leader.finish();
    assert_eq!(leader.get("q"), [] as [&str; 0], "the answer waits");
    leader.vhost.keep_leading(leader.now());
    leader.finish();
    leader.vhost.deliver_again(leader.now());
    assert_eq!(leader.finish(), ["b"]);
    // The next leader follows the one that went on, which is lost.
    let mut leader = leader.fail_over(false);
    assert_eq!(leader.get("q"), ["hold", "a again"]);
    assert_eq!(leader.get("q"), ["hold", "b again"]);
}

#[test]
fn hand_over_counts_for_the_next_term_alone() {
    let mut leader = leader_that_has_delivered();
    leader.publish("q", "c");
    leader.vhost.hand_over(leader.now());
    leader.finish();
    // A leader between has had the lead, and may have delivered before it was lost.
    leader.replicas.iter_mut().for_each(Follower::begin_term);
    let mut leader = leader.fail_over(false);
    assert_eq!(leader.get("q"), ["hold", "a again"]);
    assert_eq!(leader.get("q"), ["hold", "b again"]);
}

#[test]
fn hand_over_soon_after_a_loss_marks_what_the_lost_leader_may_deliver() {
    for (wait_ms, expected) in [(0, &["hold", "a again"][..]), (3_000, &["a"])] {
        let mut leader = leader_that_has_delivered();
        leader.declare("later", b"classic", &NOTHING);
        let mut headers = TableBuilder::new();
        headers.insert("x-opt-delivery-delay", Value::I64(2000 + wait_ms));
        let headers: Table = headers.finish();
        let headers = Some(headers.as_ref());
        leader.publish_with("later", "a", Properties { headers, ..Properties::default() });
        let mut leader = leader.fail_over(false);
        leader.sleep(u64::try_from(wait_ms).unwrap());
        let mut leader = leader.fail_over(true);
        leader.sleep(2000);
        assert_eq!(leader.get("later"), expected, "{wait_ms} ms after the loss");
    }
}
