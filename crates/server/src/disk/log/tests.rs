//! A vhost's records through the log on a disk, with compactions: what a restart reads back.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use amqp::method::MethodId;
use amqp::properties::Properties;
use amqp::table::{Table, TableBuilder, Value};
use broker::access::Access;
use broker::time::{Now, Time};
use broker::{
    ApplyTo, BrowseCursor, ChannelNumber, Command, ConnectionId, Content, DeclareQueue, Definition,
    DeliveryTag, Effect, Message, MessageState, Outcome, Outgoing, Pattern, Policy, PolicyKind,
    PolicyValue, Publish, Request, Vhost, VhostOptions,
};
use replica::{LogQueue, QueuedRecord};
use storage::{Log, LogOptions, RealDirectory, RecordSink, References, WriteBatch};

use crate::disk::pages::page_files::PageFiles;
use crate::disk::recovery::VhostLog;
use crate::disk::recovery::pages::{LogReplay, PageRecovery};
use crate::disk::recovery::replay_thread::replay_log;
use crate::limits::RESTORE_BATCH_RECORDS;

const NOW: Now = Now::from_millis(1_000_000);

/// Kinds of the records of a publish and of an annotation in the log.
const PUBLISH: u8 = 1;
const ANNOTATE: u8 = 11;

const OPTIONS: LogOptions = LogOptions {
    log_id: 1,
    durability: storage::Durability::Os,
    segment_bytes_min: 8192,
    segment_bytes_max: 16_384,
    create_if_missing: true,
};

/// A directory of the test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("leveret-{test}-{}", std::process::id()));
        std::fs::create_dir_all(path.join("log")).unwrap();
        std::fs::create_dir_all(path.join("pages")).unwrap();
        Self(path)
    }

    /// Opens the log and replays it. Returns the vhost, and the number of records of each kind that the log had.
    fn open(&self) -> (VhostLog, Vhost, BTreeMap<u8, usize>) {
        let directory = RealDirectory::open(&self.0.join("log")).unwrap();
        let pages = PageFiles::open(&self.0.join("pages"), 0, None, &Arc::default()).unwrap();
        let pages = PageRecovery::start(Arc::new(pages)).unwrap();
        let vhost = Vhost::new("/", [0; 32], VhostOptions::default());
        let mut replay = LogReplay::new(vhost, Time::default(), pages);
        let mut left_out = |lsn, problem| panic!("record {lsn} was left out: {problem}");
        let mut counts = BTreeMap::new();
        let (log, report) = replay_log(&mut replay, &mut left_out, |records| {
            let mut counted = Counted { records, counts: &mut counts };
            Log::open(directory, OPTIONS, &mut counted, &mut |_| {}).unwrap()
        });
        assert!(report.damages.is_empty(), "{report:?}");
        assert_eq!(replay.recover(), [] as [String; 0]);
        let vhost = replay.finish(NOW, report.last).unwrap();
        (log, vhost, counts)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Counts the records that it passes on, by kind.
struct Counted<'a> {
    records: &'a mut dyn RecordSink,
    counts: &'a mut BTreeMap<u8, usize>,
}

impl RecordSink for Counted<'_> {
    fn record(&mut self, record: storage::Record<'_>, references: &mut References<'_>) {
        *self.counts.entry(record.kind).or_default() += 1;
        self.records.record(record, references);
    }

    fn end(&mut self, references: &mut References<'_>) {
        self.records.end(references);
    }
}

/// A vhost with a client, whose records go to the log.
struct Broker {
    vhost: Vhost,
    log: VhostLog,
    connection: ConnectionId,
    /// Tag of the last delivery.
    tag: u64,
}

impl Broker {
    fn new(folder: &Folder) -> Self {
        let (log, vhost, _) = folder.open();
        let mut broker = Self { vhost, log, connection: ConnectionId::default(), tag: 0 };
        let access = Access::matching("guest".into(), ".*").unwrap();
        broker.connection = broker.vhost.open_connection(Arc::new(access), true);
        broker.apply(Command::OpenChannel);
        broker
    }

    fn apply(&mut self, command: Command<'_>) {
        let request = Request { channel: ChannelNumber(1), method: MethodId::NONE, command };
        self.vhost.apply(NOW, self.connection, request);
        self.write();
    }

    /// Writes what the vhost has logged since the last call, as one batch if it is not large.
    fn write(&mut self) {
        let mut queue = LogQueue::default();
        for effect in self.vhost.drain_effects() {
            match effect {
                Effect::Log { lsn, at, about, ended, record, is_joined } => {
                    ended.iter().for_each(|lsn| queue.release(*lsn));
                    queue.append(QueuedRecord { lsn, at, about, is_joined, record: &record });
                }
                Effect::Send { outgoing, .. } | Effect::SendDurable { outgoing, .. } => {
                    if let Outgoing::GetOk { delivery, .. } = outgoing {
                        self.tag = delivery.tag.0;
                    }
                }
                Effect::Page(_)
                | Effect::AwaitGet(_)
                | Effect::Hold(_)
                | Effect::Event(_)
                | Effect::Stalled(_)
                | Effect::AskBacklog(_) => {}
            }
        }
        let mut batch = WriteBatch::default();
        while queue.take_batch(&mut batch) || !batch.is_empty() {
            self.log.write_batch(&mut batch).unwrap();
            batch.clear();
        }
        self.vhost.durable(self.vhost.last_lsn());
    }

    fn declare_queue(&mut self) {
        self.apply(Command::DeclareQueue(DeclareQueue {
            queue: "q",
            passive: false,
            durable: true,
            exclusive: false,
            auto_delete: false,
            nowait: true,
            arguments: Table::default().as_ref(),
        }));
    }

    /// Sets a policy whose messages live for so long; it is written with the next batch.
    fn set_policy(&mut self, ttl_ms: i64) {
        let entries = vec![("message-ttl".to_owned(), PolicyValue::Integer(ttl_ms))];
        let policy = Policy {
            name: "ttl".into(),
            pattern: Pattern::new(".*").unwrap(),
            apply_to: ApplyTo::Queues,
            priority: 0.0,
            definition: Definition::parse(entries, PolicyKind::User).unwrap(),
        };
        self.vhost.set_policy(NOW, PolicyKind::User, policy);
    }

    fn clear_policy(&mut self) {
        assert!(self.vhost.clear_policy(NOW, PolicyKind::User, "ttl"));
    }

    fn publish(&mut self, exchange: &[u8], headers: &Table, body: &str) {
        let properties = Properties {
            delivery_mode: Some(2),
            headers: Some(headers.as_ref()),
            ..Properties::default()
        };
        let mut encoded = Vec::new();
        properties.encode(&mut encoded);
        let body = body.as_bytes().to_vec().into();
        self.apply(Command::Publish(Publish {
            exchange: exchange.into(),
            routing_key: b"q".into(),
            mandatory: false,
            content: Content::Assembled { properties: encoded.into(), body },
        }));
    }

    /// Gets a message, gives it a reason and returns it.
    fn return_with(&mut self, reason: &str) {
        self.apply(Command::Get { queue: "q", no_ack: false });
        let mut headers = TableBuilder::new();
        headers.insert("x-delivery-tag", Value::I64(i64::try_from(self.tag).unwrap()));
        headers.insert("x-op", Value::LongStr(b"requeue"));
        headers.insert("x-reason", Value::LongStr(reason.as_bytes()));
        self.publish(b"amq.settle", &headers.finish(), "");
    }

    fn ack_next(&mut self) {
        self.apply(Command::Get { queue: "q", no_ack: false });
        let tag = DeliveryTag(self.tag);
        self.apply(Command::Settle { tag, multiple: false, outcome: Outcome::Ack });
    }

    /// Compacts the log as far as possible; returns the number of files that were replaced.
    fn compact(&self) -> usize {
        let mut files = 0;
        while let Some(compaction) = self.log.compaction() {
            files += compaction.run().unwrap().files;
        }
        files
    }
}

/// The body and the reason of each message, in the order of the queue.
fn reasons(vhost: &Vhost) -> Vec<(String, Option<String>)> {
    let queue = vhost.queue_id("q").unwrap();
    let start = BrowseCursor::start(MessageState::Ready);
    let browsed = vhost.browse(queue, start, &[], usize::MAX).unwrap();
    let told = |message: &Message| {
        let properties = Properties::parse(message.properties()).unwrap();
        let reason = properties.headers.unwrap().get("x-reason");
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (text(message.body()), reason.and_then(|reason| reason.as_long_str()).map(text))
    };
    browsed.messages.iter().map(|browsed| told(&browsed.entry.message)).collect()
}

#[test]
fn annotations_outlive_compactions_and_go_with_their_messages() {
    let folder = Folder::new("annotations");
    let mut broker = Broker::new(&folder);
    broker.declare_queue();
    let mut headers = TableBuilder::new();
    headers.insert("h", Value::I32(1));
    let headers = headers.finish();
    for number in 0..200 {
        broker.publish(b"", &headers, &format!("{number:0200}"));
    }
    // All messages die but the last ten, of which one returns often. Its publish is in a file of which nothing else is
    // needed, its annotations are in this file and in later ones.
    for _ in 0..190 {
        broker.return_with("dies with its message");
        broker.ack_next();
    }
    for number in 0..300 {
        broker.return_with(&format!("return {number}"));
    }
    let expected: Vec<(String, Option<String>)> = (190..200)
        .map(|number| {
            let reason = (number == 190).then(|| "return 299".to_owned());
            (format!("{number:0200}"), reason)
        })
        .collect();
    assert_eq!(reasons(&broker.vhost), expected);
    for round in 0..3 {
        assert!(round > 0 || broker.compact() > 5, "too little was compacted");
        let Broker { log, .. } = broker;
        // Once without: a crash leaves the end of the log to be found.
        if round != 1 {
            log.close().unwrap();
        }
        let (log, vhost, counts) = folder.open();
        assert_eq!(reasons(&vhost), expected, "round {round}");
        let annotations = counts[&ANNOTATE];
        // Of 490 annotations one is needed; one for each file that was not rewritten may be left.
        assert!(annotations < 60, "round {round}: {annotations} annotations");
        broker = Broker { vhost, log, connection: ConnectionId::default(), tag: 0 };
        broker.compact();
    }
}

#[test]
fn messages_that_a_purge_ended_are_not_kept_after_a_restart() {
    // A short log is applied while it is read, a long one by a thread of its own.
    for count in [100, 5 * RESTORE_BATCH_RECORDS] {
        let folder = Folder::new(&format!("purge-{count}"));
        let mut broker = Broker::new(&folder);
        broker.declare_queue();
        for _ in 0..count {
            broker.publish(b"", &Table::default(), &"x".repeat(200));
        }
        broker.apply(Command::PurgeQueue { queue: "q", nowait: true });
        broker.publish(b"", &Table::default(), "stays");
        broker.log.close().unwrap();
        let (log, vhost, counts) = folder.open();
        assert_eq!(counts[&PUBLISH], count + 1);
        assert_eq!(vhost.queue("q").unwrap().message_count(), 1);
        let reopened = Broker { vhost, log, connection: ConnectionId::default(), tag: 0 };
        reopened.compact();
        reopened.log.close().unwrap();
        let (_, _, counts) = folder.open();
        // One file that was not rewritten may be left.
        assert!(counts[&PUBLISH] < 90, "{counts:?}");
    }
}

/// True if the policy of a test is there.
fn has_policy(vhost: &Vhost) -> bool {
    vhost.policies().iter(PolicyKind::User).any(|policy| &*policy.name == "ttl")
}

#[test]
fn policy_that_is_changed_and_cleared_within_a_batch_is_gone() {
    let folder = Folder::new("policy-batch");
    let mut broker = Broker::new(&folder);
    broker.set_policy(60_000);
    broker.write();
    broker.set_policy(70_000);
    broker.clear_policy();
    broker.write();
    broker.log.close().unwrap();
    let (_, vhost, _) = folder.open();
    assert!(!has_policy(&vhost));
}

#[test]
fn policy_stays_cleared_when_a_file_in_the_middle_was_rewritten() {
    let folder = Folder::new("policy-files");
    let mut broker = Broker::new(&folder);
    broker.declare_queue();
    let publish = |broker: &mut Broker, dies: bool| {
        for _ in 0..100 {
            broker.publish(b"", &Table::default(), &"x".repeat(200));
            if dies {
                broker.apply(Command::PurgeQueue { queue: "q", nowait: true });
            }
        }
    };
    // A file that is not rewritten, because all is needed; the others are.
    broker.set_policy(60_000);
    publish(&mut broker, false);
    for _ in 0..100 {
        broker.apply(Command::Get { queue: "q", no_ack: false });
    }
    publish(&mut broker, true);
    broker.set_policy(70_000);
    publish(&mut broker, true);
    broker.clear_policy();
    publish(&mut broker, true);
    assert!(broker.compact() > 2, "too little was compacted");
    broker.log.close().unwrap();
    let (_, vhost, _) = folder.open();
    assert!(!has_policy(&vhost));
}
