//! Streams of several nodes in one process.

use std::sync::Arc;
use std::time::Instant;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::running::{Cluster, Event, PATIENCE, Running};
use crate::cluster::links::dial::DialError;
use crate::cluster::links::registry::Links;
use crate::cluster::links::streams::{NodeStream, Opened, StreamHandler};
use crate::cluster::purpose::Purpose;
use crate::cluster::refusal::{Refusal, RefusalCode};
use crate::limits::SHIPMENT_STREAMS_MAX;
use crate::membership::ids::NodeId;

/// Keeps the accepted streams.
struct Keeper(UnboundedSender<NodeStream>);

impl StreamHandler for Keeper {
    fn accepted(&self, stream: NodeStream) {
        // The test may be over.
        drop(self.0.send(stream));
    }
}

fn keep(node: &Running, purpose: Purpose) -> UnboundedReceiver<NodeStream> {
    let (sender, streams) = unbounded_channel();
    node.links.streams.serve(purpose, Arc::new(Keeper(sender)));
    streams
}

/// Two nodes of a founded cluster.
fn founded(test: &str) -> (Cluster, Running, Running) {
    let cluster = Cluster::new(test, &["a@127.0.0.1", "b@127.0.0.1"]);
    let (a, b) = (cluster.start(0), cluster.start(1));
    a.wait_for(&Event::Founded);
    b.wait_for(&Event::Founded);
    (cluster, a, b)
}

fn refusal(dialed: Result<NodeStream, DialError>) -> Refusal {
    match dialed {
        Err(DialError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_carry_octets_both_ways_whoever_dials() {
    let (cluster, a, b) = founded("streams");
    let content: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    for (from, to, [from_id, to_id]) in
        [(&a, &b, [cluster.id(0), cluster.id(1)]), (&b, &a, [cluster.id(1), cluster.id(0)])]
    {
        let mut accepted = keep(to, Purpose::Client);
        let mut near = from.links.dial(to_id, Purpose::Client).await.unwrap();
        let mut far = accepted.recv().await.unwrap();
        assert_eq!((near.purpose, near.peer.id), (Purpose::Client, to_id));
        assert_eq!((far.purpose, far.peer.id), (Purpose::Client, from_id));
        assert_eq!((near.local, near.remote), (far.remote, far.local));
        let counts = |links: &Links, opened| links.streams.count(Purpose::Client, opened);
        assert_eq!(counts(&from.links, Opened::Here), 1);
        assert_eq!(counts(&to.links, Opened::ByPeer), 1);
        let echo = async {
            let (mut reads, mut writes) = tokio::io::split(&mut far);
            tokio::io::copy(&mut reads, &mut writes).await.unwrap();
            writes.shutdown().await.unwrap();
        };
        let talk = async {
            let (mut reads, mut writes) = tokio::io::split(&mut near);
            let mut back = Vec::new();
            let write = async {
                writes.write_all(&content).await.unwrap();
                writes.shutdown().await.unwrap();
            };
            let (_, read) = tokio::join!(write, reads.read_to_end(&mut back));
            read.unwrap();
            back
        };
        let ((), back) = tokio::join!(echo, talk);
        assert!(back == content, "{} octets came back", back.len());
        drop((near, far));
        assert_eq!(counts(&from.links, Opened::Here), 0);
        assert_eq!(counts(&to.links, Opened::ByPeer), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_beyond_a_limit_are_refused_until_others_end() {
    let (cluster, a, b) = founded("many-streams");
    let mut accepted = keep(&b, Purpose::Shipment);
    let mut open = Vec::new();
    for _ in 0..SHIPMENT_STREAMS_MAX {
        let near = a.links.dial(cluster.id(1), Purpose::Shipment).await.unwrap();
        open.push((near, accepted.recv().await.unwrap()));
    }
    // The own limit is the first one that is seen.
    let refused = refusal(a.links.dial(cluster.id(1), Purpose::Shipment).await);
    assert_eq!(refused.code(), RefusalCode::Busy);
    let (near, far) = open.pop().unwrap();
    drop(near);
    // The peer has forgotten nothing.
    let refused = refusal(a.links.dial(cluster.id(1), Purpose::Shipment).await);
    assert_eq!(refused, Refusal::FromPeer(RefusalCode::Busy));
    drop(far);
    assert!(a.links.dial(cluster.id(1), Purpose::Shipment).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_need_a_handler_a_listed_node_and_a_running_one() {
    let (cluster, a, mut b) = founded("no-streams");
    let refused = refusal(a.links.dial(cluster.id(1), Purpose::Http).await);
    assert_eq!(refused, Refusal::FromPeer(RefusalCode::Purpose));
    b.refuses(RefusalCode::Purpose);
    let unknown = a.links.dial(NodeId(5), Purpose::Http).await;
    assert!(matches!(unknown, Err(DialError::Unknown)), "{unknown:?}");
    b.kill();
    let until = Instant::now() + PATIENCE;
    loop {
        match a.links.dial(cluster.id(1), Purpose::Http).await {
            Err(DialError::Connect(_)) => break,
            other => assert!(Instant::now() < until, "{other:?}"),
        }
    }
}

/// The third node of the list never comes.
#[tokio::test(flavor = "multi_thread")]
async fn streams_need_a_founded_cluster() {
    let cluster = Cluster::new("unfounded", &["a@127.0.0.1", "b@127.0.0.1", "c@127.0.0.1"]);
    let (a, b) = (cluster.start(0), cluster.start(1));
    a.wait_for(&Event::Connected(cluster.id(1)));
    let _streams = keep(&b, Purpose::Http);
    let refused = refusal(a.links.dial(cluster.id(1), Purpose::Http).await);
    assert_eq!(refused.code(), RefusalCode::NotFounded);
}

/// A node whose data were lost, or that was copied, has another disk.
#[tokio::test(flavor = "multi_thread")]
async fn streams_are_refused_to_a_node_with_another_disk() {
    let (cluster, a, b) = founded("other-disk");
    let _streams = keep(&a, Purpose::Http);
    drop(b);
    let path = cluster.dir(1).join("cluster.json");
    let disk =
        a.links.hello(crate::cluster::handshake::hello::Side::Dialer, Purpose::Link).unwrap().disk;
    assert!(std::fs::read_to_string(&path).unwrap().contains(&disk.to_string()));
    std::fs::remove_file(&path).unwrap();
    let b = cluster.start(1);
    // Nothing is founded with the new disk, but the disk is the reason.
    let refused = refusal(b.links.dial(cluster.id(0), Purpose::Http).await);
    assert_eq!(refused, Refusal::FromPeer(RefusalCode::Disk));
}
