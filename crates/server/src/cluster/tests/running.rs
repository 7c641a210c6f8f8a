//! Links of several nodes in one process, over sockets of this machine.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::auth::user_slots::UserCounts;
use crate::clock::Clock;
use crate::cluster::frames::control::Facts;
use crate::cluster::links::registry::{FrameClass, Links};
use crate::cluster::links::serve::RunningLinks;
use crate::cluster::peer::events::{LinkEvents, LocalNode, LostCause};
use crate::cluster::refusal::RefusalCode;
use crate::cluster::tests::owned_port::OwnedPort;
use crate::config::{ClusterNode, ClusterOptions};
use crate::membership::ids::NodeId;
use crate::sockets::listener::Listener;
use crate::sockets::refusals::Refusals;

/// Far longer than anything here takes.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug, PartialEq)]
pub(super) enum Event {
    Connected(NodeId),
    Lost(NodeId, LostCause),
    Frame(NodeId, Bytes),
    Clock(NodeId),
    Founded,
}

struct Recorder(Mutex<Sender<Event>>);

impl Recorder {
    fn note(&self, event: Event) {
        // The test may be over.
        drop(self.0.lock().send(event));
    }
}

impl LinkEvents for Recorder {
    fn connected(&self, peer: NodeId) {
        self.note(Event::Connected(peer));
    }

    fn lost(&self, peer: NodeId, cause: &LostCause) {
        self.note(Event::Lost(peer, cause.clone()));
    }

    fn frames(&self, peer: NodeId, frames: Vec<Bytes>) {
        frames.into_iter().for_each(|frame| self.note(Event::Frame(peer, frame)));
    }

    fn clock(&self, peer: NodeId, sent_us: u64, received_us: u64, _: i64) {
        // One clock serves all nodes of the test.
        assert!(sent_us <= received_us, "{sent_us} {received_us}");
        self.note(Event::Clock(peer));
    }

    fn lost_disk(&self) {}

    fn founded(&self) {
        self.note(Event::Founded);
    }
}

struct Local;

impl LocalNode for Local {
    fn facts(&self) -> Facts {
        Facts { processors: 7, ..Facts::default() }
    }

    fn users(&self) -> UserCounts {
        UserCounts::new()
    }

    fn alarm_told(&self) {}

    fn nodes_told(&self) {}

    fn followed(&self, _: NodeId, _: u64) {}
}

/// The nodes of a cluster with their ports and data directories.
pub(super) struct Cluster {
    folder: PathBuf,
    pub(super) names: Vec<&'static str>,
    ports: Vec<OwnedPort>,
    pub(super) clock: Clock,
}

/// A node that runs.
pub(super) struct Running {
    pub(super) links: Arc<Links>,
    running: Option<RunningLinks>,
    events: Receiver<Event>,
}

impl Cluster {
    pub(super) fn new(test: &str, names: &[&'static str]) -> Self {
        let folder =
            std::env::temp_dir().join(format!("leveret-links-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let ports = names.iter().map(|_| OwnedPort::draw()).collect();
        Self { folder, names: names.to_vec(), ports, clock: Clock::start() }
    }

    pub(super) fn options(&self) -> ClusterOptions {
        let nodes = self.names.iter().zip(&self.ports).map(|(name, port)| ClusterNode {
            name: (*name).to_owned(),
            host: "127.0.0.1".to_owned(),
            port: port.number,
            key: format!("the key of {name}"),
        });
        ClusterOptions {
            nodes: nodes.collect(),
            secret: Some("the secret of the cluster".to_owned()),
            ..ClusterOptions::default()
        }
    }

    pub(super) fn dir(&self, at: usize) -> PathBuf {
        self.folder.join(at.to_string())
    }

    pub(super) fn start(&self, at: usize) -> Running {
        self.start_with(at, &self.options())
    }

    pub(super) fn start_with(&self, at: usize, options: &ClusterOptions) -> Running {
        let dir = self.dir(at);
        std::fs::create_dir_all(&dir).unwrap();
        let links = Links::open(options, self.names[at], &dir, self.clock, None).unwrap().unwrap();
        // The runtime of a node that was dropped closes its listener soon.
        let until = Instant::now() + PATIENCE;
        let listener = loop {
            match Listener::bind("links", self.address(at)) {
                Ok(listener) => break listener,
                Err(error) => assert!(Instant::now() < until, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let (sender, events) = channel();
        let recorder = Arc::new(Recorder(Mutex::new(sender)));
        let local = Arc::new(Local);
        let refusals = Arc::new(Refusals::default());
        let running =
            RunningLinks::start(Arc::clone(&links), vec![listener], recorder, local, &refusals);
        Running { links, running: Some(running.unwrap()), events }
    }

    pub(super) fn address(&self, at: usize) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.ports[at].number))
    }

    pub(super) fn id(&self, at: usize) -> NodeId {
        NodeId::of(self.names[at])
    }

    /// The two nodes of a pair: the one that dials first.
    fn dialer_first(&self) -> [usize; 2] {
        if self.id(0) < self.id(1) { [0, 1] } else { [1, 0] }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

impl Running {
    /// Waits for an event, and skips others.
    fn wait(&self, is_it: impl Fn(&Event) -> bool) -> Event {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let event = self.events.recv_timeout(left).expect("the event comes");
            if is_it(&event) {
                return event;
            }
        }
    }

    /// Frames from a node, as many as are expected. `None` if the link is silent before.
    fn frames_of(&self, peer: NodeId, count: usize) -> Option<Vec<Bytes>> {
        let mut frames = Vec::new();
        while frames.len() < count {
            let event = self.wait(|event| matches!(event, Event::Frame(..) | Event::Lost(..)));
            if matches!(event, Event::Lost(_, LostCause::Silent | LostCause::Closed(_))) {
                return None;
            }
            let Event::Frame(of, frame) = event else { panic!("{event:?}") };
            assert_eq!(of, peer);
            frames.push(frame);
        }
        Some(frames)
    }

    pub(super) fn wait_for(&self, event: &Event) {
        self.wait(|one| one == event);
    }

    pub(super) fn lost(&self, peer: NodeId) -> LostCause {
        let event = self.wait(|event| matches!(event, Event::Lost(of, _) if *of == peer));
        let Event::Lost(_, cause) = event else { panic!("{event:?}") };
        cause
    }

    /// Waits until a link was refused for this reason.
    pub(super) fn refuses(&self, code: RefusalCode) {
        let until = Instant::now() + PATIENCE;
        while self.links.refused().iter().all(|(one, count)| *one != code || *count == 0) {
            assert!(Instant::now() < until, "{:?}", self.links.refused());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The process ends: sockets are closed, and nothing is said.
    pub(super) fn kill(&mut self) {
        self.running.take().unwrap().kill();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_meet_and_found_their_cluster() {
    let cluster = Cluster::new("three", &["a@127.0.0.1", "b@127.0.0.1", "c@127.0.0.1"]);
    let first = cluster.start(0);
    let second = cluster.start(1);
    first.wait_for(&Event::Connected(cluster.id(1)));
    assert!(!first.links.is_founded());
    let third = cluster.start(2);
    for node in [&first, &second, &third] {
        node.wait_for(&Event::Founded);
        assert!(node.links.is_founded());
    }
    // A restarted node knows it.
    drop(third);
    let again = cluster.start(2);
    assert!(again.links.is_founded());
    again.wait(|event| matches!(event, Event::Connected(_)));
    again.wait(|event| matches!(event, Event::Clock(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_arrive_in_order_and_short_ones_soon() {
    let cluster = Cluster::new("frames", &["a@127.0.0.1", "b@127.0.0.1"]);
    let [near, far] = cluster.dialer_first();
    let (a, b) = (cluster.start(near), cluster.start(far));
    assert!(!a.links.send(cluster.id(far), Bytes::from_static(b"early"), FrameClass::Ordered));
    for node in [&a, &b] {
        node.wait(|event| matches!(event, Event::Connected(_)));
    }
    for (from, to, (from_id, to_id)) in [
        (&a, &b, (cluster.id(near), cluster.id(far))),
        (&b, &a, (cluster.id(far), cluster.id(near))),
    ] {
        let bulk = Bytes::from(vec![9; 32 * 1024 * 1024]);
        let frames: Vec<Bytes> =
            (0..200_u8).map(|n| Bytes::from(vec![n; usize::from(n) * 1000])).collect();
        let until = Instant::now() + PATIENCE;
        let mut arrived = loop {
            let send = |frame: &Bytes, class| from.links.send(to_id, frame.clone(), class);
            let are_sent = send(&bulk, FrameClass::Bulk)
                && frames.iter().all(|frame| send(frame, FrameClass::Ordered));
            from.links.flush();
            if let Some(arrived) = to.frames_of(from_id, frames.len() + 1).filter(|_| are_sent) {
                break arrived;
            }
            // The machine was busy with other things for so long that the link counted as silent, which loses frames.
            assert!(Instant::now() < until, "the link stays");
            for node in [from, to] {
                node.wait(|event| matches!(event, Event::Connected(_)));
            }
        };
        let place = arrived.iter().position(|frame| frame.len() == bulk.len()).unwrap();
        assert_eq!(arrived.remove(place), bulk);
        assert_eq!(arrived, frames);
    }
    let rtt = || a.links.peers()[0].state.lock().rtt_us;
    let until = Instant::now() + PATIENCE;
    while rtt().is_none() || a.links.peers()[0].state.lock().facts.is_none() {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_process_is_noticed_at_once_and_comes_back() {
    let cluster = Cluster::new("kill", &["a@127.0.0.1", "b@127.0.0.1"]);
    for killed in [0, 1] {
        let a = cluster.start(1 - killed);
        let mut b = cluster.start(killed);
        let peer = cluster.id(killed);
        a.wait_for(&Event::Connected(peer));
        b.wait_for(&Event::Connected(cluster.id(1 - killed)));
        b.kill();
        assert!(matches!(a.lost(peer), LostCause::Closed(_)));
        let mut b = cluster.start(killed);
        a.wait_for(&Event::Connected(peer));
        // A stop is told.
        b.running.take().unwrap().stop().await;
        assert_eq!(a.lost(peer), LostCause::PeerStops);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn node_that_lost_its_disk_is_refused() {
    let cluster = Cluster::new("disk", &["a@127.0.0.1", "b@127.0.0.1"]);
    let a = cluster.start(0);
    let b = cluster.start(1);
    a.wait_for(&Event::Founded);
    b.wait_for(&Event::Founded);
    drop(b);
    std::fs::remove_dir_all(cluster.dir(1)).unwrap();
    let b = cluster.start(1);
    a.refuses(RefusalCode::Disk);
    b.refuses(RefusalCode::OwnDisk);
    assert!(!b.links.is_founded());
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_links_are_counted_and_the_others_stay() {
    let cluster = Cluster::new("refused", &["a@127.0.0.1", "b@127.0.0.1"]);
    let a = cluster.start(0);
    let options = cluster.options();
    let other = ClusterOptions { secret: Some("another secret".to_owned()), ..options };
    let b = cluster.start_with(1, &other);
    a.refuses(RefusalCode::Secret);
    b.refuses(RefusalCode::Secret);
    drop(b);
    // With the right secret the next attempt succeeds.
    let b = cluster.start(1);
    a.wait_for(&Event::Connected(cluster.id(1)));
    drop(b);
}

/// The list names a third node at the address of the second one.
#[tokio::test(flavor = "multi_thread")]
async fn other_node_at_an_address_is_refused() {
    let cluster = Cluster::new("name", &["a@127.0.0.1", "b@127.0.0.1", "c@127.0.0.1"]);
    let mut order = [0, 1, 2];
    order.sort_by_key(|at| cluster.id(*at));
    let [first, second, third] = order;
    let mut misled = cluster.options();
    misled.nodes[third].port = cluster.ports[second].number;
    let dialer = cluster.start_with(first, &misled);
    let answers = cluster.start(second);
    dialer.refuses(RefusalCode::Name);
    dialer.wait_for(&Event::Connected(cluster.id(second)));
    drop(answers);
}

/// A stranger for each of many places, none of which says anything.
#[tokio::test(flavor = "multi_thread")]
async fn stuck_connections_do_not_keep_a_node_out() {
    let limit = getrlimit(Resource::Nofile);
    // Fewer sockets do, too.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let all = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let count = usize::try_from(all / 4).unwrap_or(usize::MAX).min(5000);
    let cluster = Cluster::new("stuck", &["a@127.0.0.1", "b@127.0.0.1"]);
    let [near, far] = cluster.dialer_first();
    let answers = cluster.start(far);
    let mut stuck = Vec::new();
    for n in 0..count {
        let mut socket = TcpStream::connect(cluster.address(far)).await.unwrap();
        if n % 2 == 0 {
            // Half a hello. The node may have closed it already.
            drop(socket.write_all(&[1, 100]).await);
        }
        stuck.push(socket);
    }
    let dialer = cluster.start(near);
    dialer.wait_for(&Event::Connected(cluster.id(far)));
    answers.wait_for(&Event::Connected(cluster.id(near)));
    // The strangers are closed, but for a few.
    let until = Instant::now() + PATIENCE;
    while stuck.len() > crate::limits::LINK_HANDSHAKES_MAX {
        assert!(Instant::now() < until, "{} are open", stuck.len());
        let mut open = Vec::new();
        for mut socket in stuck {
            let mut room = [0; 64];
            let read = tokio::time::timeout(Duration::from_millis(1), socket.read(&mut room)).await;
            if read.is_err() {
                open.push(socket);
            }
        }
        stuck = open;
    }
}

/// A peer that has proved itself and then sends nothing, or garbage.
#[tokio::test(flavor = "multi_thread")]
async fn silent_and_damaged_links_are_lost() {
    use crate::cluster::handshake::hello::{Hello, Message, Side, Transcript};
    use crate::cluster::purpose::Purpose;
    let cluster = Cluster::new("silent", &["a@127.0.0.1", "b@127.0.0.1"]);
    let [near, far] = cluster.dialer_first();
    let dir = cluster.dir(near);
    std::fs::create_dir_all(&dir).unwrap();
    let scripted = Links::open(&cluster.options(), cluster.names[near], &dir, cluster.clock, None);
    let scripted = scripted.unwrap().unwrap();
    let node = cluster.start(far);
    for garbage in [None, Some(&b"\xff\xff\xff\xff garbage"[..])] {
        let mut socket = TcpStream::connect(cluster.address(far)).await.unwrap();
        let ours = scripted.hello(Side::Dialer, Purpose::Link).unwrap().encode();
        socket.write_all(&Message::Hello(ours.clone()).encode()).await.unwrap();
        let mut header = [0; 3];
        socket.read_exact(&mut header).await.unwrap();
        let mut theirs = vec![0; usize::from(u16::from_le_bytes([header[1], header[2]]))];
        socket.read_exact(&mut theirs).await.unwrap();
        assert!(Hello::decode(&theirs).is_ok());
        let transcript = Transcript { dialer: &ours, acceptor: &theirs, exporter: None };
        let proof = transcript.proof(&scripted.secret, Side::Dialer);
        socket.write_all(&Message::Proof(proof).encode()).await.unwrap();
        let introduction =
            crate::cluster::frames::control::Control::Introduction(scripted.introduction());
        let mut chunk = bytes::BytesMut::new();
        let channel = crate::cluster::frames::wire::Channel::Control;
        crate::cluster::frames::wire::put_chunk(&mut chunk, channel, true, &introduction.encode());
        socket.write_all(&chunk).await.unwrap();
        node.wait_for(&Event::Connected(cluster.id(near)));
        if let Some(garbage) = garbage {
            socket.write_all(garbage).await.unwrap();
        }
        let cause = node.lost(cluster.id(near));
        match garbage {
            None => assert_eq!(cause, LostCause::Silent),
            Some(_) => assert!(matches!(cause, LostCause::Damaged(_)), "{cause:?}"),
        }
    }
}
