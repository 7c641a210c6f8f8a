//! Tests of one vhost beside another whose lock is held for long.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use amqp::table::{TableBuilder, TableRef, Value};
use broker::access::Access;
use broker::{Command, Content, DeclareQueue, Outgoing, Publish};

use super::VhostHandle;
use crate::embedded::{Configuration, Embedded};
use crate::requests::VhostChange;
use crate::vhost::internal_channel::InternalChannel;

/// Longer than any step takes on the slowest machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// A broker with the vhosts `/` and `other` in a directory of its own.
struct Broker {
    embedded: Option<Embedded>,
    folder: PathBuf,
}

impl Broker {
    fn start(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("leveret-{name}-{}", std::process::id()));
        let text = format!("data_dir = {}\n", folder.display());
        let configuration = Configuration::parse(&text, Path::new("a.conf")).unwrap();
        let embedded = Embedded::start(&configuration).unwrap();
        embedded.node().make_or_change_vhost("other", VhostChange::default(), "guest").unwrap();
        Self { embedded: Some(embedded), folder }
    }

    fn vhost(&self, name: &str) -> Arc<VhostHandle> {
        self.embedded.as_ref().unwrap().node().vhosts.get(name).unwrap()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.embedded = None;
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Opens a channel of a user with all permissions.
async fn open(handle: &Arc<VhostHandle>) -> InternalChannel {
    let access = Arc::new(Access::matching("guest".into(), ".*").unwrap());
    InternalChannel::open(Arc::clone(handle), access).await.unwrap()
}

/// Declares a durable queue; the answer arrives when it is on disk.
async fn declare(channel: &mut InternalChannel, queue: &str, arguments: TableRef<'_>) -> u32 {
    channel.apply(Command::DeclareQueue(DeclareQueue {
        queue,
        passive: false,
        durable: true,
        exclusive: false,
        auto_delete: false,
        nowait: false,
        arguments,
    }));
    let answer = channel.answer().await.unwrap();
    let Outgoing::QueueDeclareOk { message_count, .. } = answer else { panic!("{answer:?}") };
    message_count
}

/// Declares a queue whose messages expire into `target` at once, and publishes a message to it.
async fn publish_to_expire(channel: &mut InternalChannel, target: &str) {
    let mut arguments = TableBuilder::new();
    arguments.insert("x-message-ttl", Value::I64(1));
    arguments.insert("x-dead-letter-exchange", Value::LongStr(b""));
    arguments.insert("x-dead-letter-routing-key", Value::LongStr(target.as_bytes()));
    declare(channel, "expiring", arguments.as_ref()).await;
    let content = Content::Assembled { properties: vec![0, 0].into(), body: vec![1].into() };
    channel.apply(Command::Publish(Publish {
        exchange: b"".into(),
        routing_key: b"expiring".into(),
        mandatory: false,
        content,
    }));
}

/// Holds the lock of a vhost until the sender is dropped.
fn hold(handle: &Arc<VhostHandle>) -> (Sender<()>, JoinHandle<()>) {
    let (end, ends) = channel();
    let (begun, begins) = channel();
    let handle = Arc::clone(handle);
    let thread = std::thread::spawn(move || {
        handle.read(|_, _| {
            begun.send(()).unwrap();
            ends.recv().unwrap_err();
        });
    });
    begins.recv().unwrap();
    (end, thread)
}

/// The timer, the log writer and the only worker of the runtime have work in the vhost whose lock is held,
/// and still serve the other vhost.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn held_lock_of_a_vhost_delays_no_other_vhost() {
    let broker = Broker::start("isolation");
    let (slow, quick) = (broker.vhost("other"), broker.vhost("/"));
    let mut in_slow = open(&slow).await;
    let mut in_quick = open(&quick).await;
    declare(&mut in_slow, "dead", TableRef::default()).await;
    declare(&mut in_quick, "dead", TableRef::default()).await;
    publish_to_expire(&mut in_slow, "dead").await;

    let (end, thread) = hold(&slow);
    // A task of a connection, and an HTTP request.
    let connection = in_slow.connection();
    let (tells, has_tried) = tokio::sync::oneshot::channel();
    let enters = tokio::spawn({
        let slow = Arc::clone(&slow);
        async move {
            let (mut tries, mut tells) = (0, Some(tells));
            while slow.try_apply(connection, &mut Vec::new()).is_none() {
                if let Some(tells) = tells.take() {
                    tells.send(()).unwrap();
                }
                slow.long_hold_ended().await;
                tries += 1;
            }
            tries
        }
    });
    let looks = tokio::spawn({
        let slow = Arc::clone(&slow);
        async move { slow.read(|vhost, _| vhost.queue("dead").is_some()) }
    });
    has_tried.await.unwrap();
    let quick_is_served = async {
        publish_to_expire(&mut in_quick, "dead").await;
        while declare(&mut in_quick, "dead", TableRef::default()).await == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, quick_is_served).await.expect("served beside a held lock");
    assert!(!enters.is_finished() && !looks.is_finished());

    drop(end);
    assert!(enters.await.unwrap() > 0);
    assert!(looks.await.unwrap());
    let slow_goes_on = async {
        while declare(&mut in_slow, "dead", TableRef::default()).await == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, slow_goes_on).await.expect("served after the lock was released");
    thread.join().unwrap();
}
