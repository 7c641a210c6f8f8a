//! Dialogues of the handshake with a scripted peer.

use std::sync::Arc;

use replication::levels::RECORD_LEVEL;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use crate::cluster::handshake::hello::{
    CheckContext, EXPORTER_BYTES, Hello, Message, NONCE_BYTES, Secret, Side, Transcript,
};
use crate::cluster::handshake::{HandshakeError, Own, shake_hands};
use crate::cluster::peer::Peer;
use crate::cluster::purpose::{PROTOCOL, Purpose};
use crate::cluster::refusal::{Refusal, RefusalCode};
use crate::config::ClusterNode;
use crate::limits::HANDSHAKE_BYTES_MAX;
use crate::membership::ids::{ClusterId, DiskId, NodeId};
use crate::membership::node_list::{ListedNode, NodeList};

/// A side of a dialogue.
#[derive(Clone)]
struct Node {
    hello: Hello,
    secret: Secret,
    exporter: Option<[u8; EXPORTER_BYTES]>,
    nodes: Vec<ClusterNode>,
    list: NodeList,
    /// The level of record kinds of the cluster, as the node knows it.
    cluster_level: u16,
    dialed: Option<&'static str>,
    refuses_streams: bool,
}

impl Node {
    fn new(name: &str, nonce: u8) -> Self {
        let nodes: Vec<ClusterNode> = ["a@h", "b@h", "c@h"]
            .into_iter()
            .map(|name| ClusterNode {
                name: name.to_owned(),
                host: "h".to_owned(),
                port: 1,
                key: format!("the key of {name}"),
            })
            .collect();
        let hello = Hello {
            protocol: PROTOCOL,
            purpose: Purpose::Link,
            cluster: ClusterId::of(nodes.iter().map(|node| node.name.as_str())),
            node: NodeId::of(name),
            name: name.to_owned(),
            disk: DiskId(1),
            is_founded: false,
            log_format: 1,
            record_level: RECORD_LEVEL,
            build: String::new(),
            nonce: [nonce; NONCE_BYTES],
        };
        let secret = Secret::new("the secret of the cluster");
        Self {
            hello,
            secret,
            exporter: None,
            nodes,
            list: NodeList::default(),
            cluster_level: 1,
            dialed: None,
            refuses_streams: false,
        }
    }

    async fn shake(
        &self,
        side: Side,
        socket: &mut DuplexStream,
    ) -> Result<(Hello, String), HandshakeError> {
        let dialed = self.dialed.and_then(|name| self.nodes.iter().find(|node| node.name == name));
        let others = self.nodes.iter().filter(|node| node.name != self.hello.name);
        let peers: Vec<Arc<Peer>> =
            others.map(|node| Arc::new(Peer::new(node.clone(), 0))).collect();
        let own = Own {
            side,
            hello: &self.hello,
            secret: &self.secret,
            exporter: self.exporter,
            known: CheckContext {
                cluster: self.hello.cluster,
                own: self.hello.node,
                record_level: self.cluster_level,
                peers: &peers,
                nodes: &self.list,
                dialed,
            },
            admit: &|hello: &Hello| match self.refuses_streams && hello.purpose != Purpose::Link {
                true => Err(Refusal::Busy { max: 1 }),
                false => Ok(()),
            },
        };
        let (hello, peer) = shake_hands(socket, own).await?;
        Ok((hello, peer.node.name.clone()))
    }
}

/// The refusal of a failed handshake.
fn refusal<T: std::fmt::Debug>(shaken: Result<T, HandshakeError>) -> Refusal {
    match shaken {
        Err(HandshakeError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

/// Results of both sides: of the dialer, then of the acceptor.
async fn both(dialer: &Node, acceptor: &Node) -> [Result<(Hello, String), HandshakeError>; 2] {
    let (mut near, mut far) = duplex(64 * 1024);
    let (dialed, accepted) = tokio::join!(
        dialer.shake(Side::Dialer, &mut near),
        acceptor.shake(Side::Acceptor, &mut far)
    );
    [dialed, accepted]
}

/// The result of the acceptor when a scripted dialer sends these bytes and closes.
async fn told(bytes: &[u8]) -> Result<(Hello, String), HandshakeError> {
    let (mut near, mut far) = duplex(64 * 1024);
    near.write_all(bytes).await.unwrap();
    near.shutdown().await.unwrap();
    Node::new("b@h", 2).shake(Side::Acceptor, &mut far).await
}

#[tokio::test]
async fn strangers_may_ask_to_join_and_nothing_else() {
    let stranger = || Node {
        hello: Hello { cluster: ClusterId(9), ..Node::new("x@h", 1).hello },
        ..Node::new("x@h", 1)
    };
    let acceptor = Node::new("b@h", 2);
    let [_, accepted] = both(&stranger(), &acceptor).await;
    assert!(matches!(refusal(accepted), Refusal::Cluster { .. }));
    let mut asks = stranger();
    asks.hello.purpose = Purpose::Join;
    let [dialed, accepted] = both(&asks, &acceptor).await;
    assert_eq!((dialed.unwrap().1, accepted.unwrap().1), ("b@h".to_owned(), "x@h".to_owned()));
    let mut without_secret = Node { secret: Secret::new("another secret of it"), ..stranger() };
    without_secret.hello.purpose = Purpose::Join;
    let [_, accepted] = both(&without_secret, &acceptor).await;
    assert_eq!(refusal(accepted), Refusal::Secret);
}

#[tokio::test]
async fn node_that_does_not_read_the_records_of_the_cluster_is_told_so() {
    let node = |name, nonce, reads| {
        let mut node = Node { cluster_level: 2, ..Node::new(name, nonce) };
        node.hello.record_level = reads;
        node
    };
    // The level of an equal, a newer and an older node.
    for (reads, is_refused) in [(2, false), (3, false), (1, true)] {
        let refused = Refusal::RecordLevel { name: "c@h".to_owned(), ours: 2, theirs: reads };
        let told = Refusal::FromPeer(RefusalCode::RecordLevel);
        let [dialed, accepted] = both(&node("c@h", 1, reads), &node("b@h", 2, 2)).await;
        match is_refused {
            true => assert_eq!([refusal(dialed), refusal(accepted)], [told, refused.clone()]),
            false => assert!(dialed.is_ok() && accepted.is_ok(), "{reads}"),
        }
        // The dialer of a link refuses the acceptor on the link.
        for (purpose, may_refuse) in [(Purpose::Link, false), (Purpose::Client, true)] {
            let mut dialer = node("b@h", 1, 2);
            (dialer.hello.purpose, dialer.dialed) = (purpose, Some("c@h"));
            let [dialed, accepted] = both(&dialer, &node("c@h", 2, reads)).await;
            let is_refused = is_refused && may_refuse;
            assert_eq!((dialed.is_err(), accepted.is_err()), (is_refused, false));
            if is_refused {
                assert_eq!(refusal(dialed), refused);
            }
        }
        // Which nodes may join is decided where the list of the nodes is.
        let mut asks = node("x@h", 1, reads);
        asks.hello.purpose = Purpose::Join;
        let [dialed, accepted] = both(&asks, &node("b@h", 2, 2)).await;
        assert!(dialed.is_ok() && accepted.is_ok(), "{reads}");
    }
}

#[tokio::test]
async fn forgotten_node_is_told_so() {
    let mut acceptor = Node::new("b@h", 2);
    acceptor.nodes.retain(|node| node.name != "c@h");
    let [_, accepted] = both(&Node::new("c@h", 1), &acceptor).await;
    assert_eq!(refusal(accepted), Refusal::Node { name: "c@h".to_owned() });
    let (host, disk) = ("h".to_owned(), DiskId(1));
    let forgotten = ListedNode { host, port: 1, disk, joins: 0, is_forgotten: true };
    acceptor.list.0.insert("c@h".to_owned(), forgotten);
    let [dialed, accepted] = both(&Node::new("c@h", 1), &acceptor).await;
    assert_eq!(refusal(dialed), Refusal::FromPeer(RefusalCode::Forgotten));
    assert_eq!(refusal(accepted), Refusal::Forgotten { name: "c@h".to_owned() });
}

#[tokio::test]
async fn nodes_with_the_same_secret_shake_hands() {
    let dialer = Node { dialed: Some("b@h"), ..Node::new("a@h", 1) };
    let acceptor = Node::new("b@h", 2);
    let [dialed, accepted] = both(&dialer, &acceptor).await;
    assert_eq!(dialed.unwrap(), (acceptor.hello.clone(), "b@h".to_owned()));
    assert_eq!(accepted.unwrap(), (dialer.hello.clone(), "a@h".to_owned()));
    let tls = |node: &Node, byte| Node { exporter: Some([byte; EXPORTER_BYTES]), ..node.clone() };
    let [dialed, accepted] = both(&tls(&dialer, 5), &tls(&acceptor, 5)).await;
    assert!(dialed.is_ok() && accepted.is_ok());
    // Somebody between them ends one TLS session and begins another.
    let [dialed, accepted] = both(&tls(&dialer, 5), &tls(&acceptor, 6)).await;
    assert_eq!(refusal(dialed), Refusal::FromPeer(RefusalCode::Secret));
    assert_eq!(refusal(accepted), Refusal::Secret);
}

#[tokio::test]
async fn both_sides_hear_why_a_node_is_refused() {
    let (a, b) = (Node::new("a@h", 1), Node::new("b@h", 2));
    let stranger = Node { secret: Secret::new("another secret"), ..a.clone() };
    let [dialed, accepted] = both(&stranger, &b).await;
    assert_eq!(refusal(dialed), Refusal::FromPeer(RefusalCode::Secret));
    assert_eq!(refusal(accepted), Refusal::Secret);

    let mut other = a.clone();
    other.hello.cluster = ClusterId(9);
    let [dialed, accepted] = both(&other, &b).await;
    assert_eq!(refusal(dialed), Refusal::FromPeer(RefusalCode::Cluster));
    let (ours, theirs) = (b.hello.cluster, ClusterId(9));
    assert_eq!(refusal(accepted), Refusal::Cluster { name: "a@h".to_owned(), ours, theirs });

    let mut unlisted = a.clone();
    unlisted.hello.name = "x@h".to_owned();
    unlisted.hello.node = NodeId::of("x@h");
    let [_, accepted] = both(&unlisted, &b).await;
    assert_eq!(refusal(accepted), Refusal::Node { name: "x@h".to_owned() });
    unlisted.hello.node = NodeId(5);
    let [_, accepted] = both(&unlisted, &b).await;
    assert_eq!(refusal(accepted), Refusal::Malformed);

    let elsewhere = Node { dialed: Some("c@h"), ..a.clone() };
    let [dialed, _] = both(&elsewhere, &b).await;
    assert_eq!(
        refusal(dialed).to_string(),
        "at h:1 is node 'b@h', not 'c@h' as the key of c@h says"
    );

    let mut newer = a.clone();
    newer.hello.protocol = (4, 5);
    let [dialed, accepted] = both(&newer, &b).await;
    assert_eq!(refusal(dialed), Refusal::FromPeer(RefusalCode::Version));
    assert_eq!(refusal(accepted), Refusal::Version { oldest: 4, newest: 5 });
}

#[tokio::test]
async fn streams_are_admitted_or_refused_before_the_proof() {
    let mut dialer = Node { dialed: Some("b@h"), ..Node::new("a@h", 1) };
    dialer.hello.purpose = Purpose::Client;
    dialer.hello.protocol = Hello::versions(Purpose::Client);
    let acceptor = Node::new("b@h", 2);
    let [dialed, accepted] = both(&dialer, &acceptor).await;
    assert_eq!(dialed.unwrap().0.purpose, Purpose::Client);
    assert_eq!(accepted.unwrap().0, dialer.hello);

    let full = Node { refuses_streams: true, ..acceptor.clone() };
    let [dialed, accepted] = both(&dialer, &full).await;
    assert_eq!(refusal(dialed), Refusal::FromPeer(RefusalCode::Busy));
    assert_eq!(refusal(accepted), Refusal::Busy { max: 1 });

    // A purpose of a later version.
    let mut hello = dialer.hello.encode();
    hello[12] = 99;
    let told = told(&Message::Hello(hello).encode()).await;
    assert_eq!(refusal(told), Refusal::Purpose(99));
}

/// A node that knows links only takes the stream for a link of a later version.
#[tokio::test]
async fn stream_offers_no_version_of_links_alone() {
    let (oldest, _) = Hello::versions(Purpose::Http);
    assert!(oldest > 1);
    assert_eq!(Hello::versions(Purpose::Link).0, 1);
}

#[tokio::test]
async fn echo_gets_no_proof() {
    let (mut near, mut far) = duplex(64 * 1024);
    let dialer = Node::new("a@h", 1);
    let echo = async move {
        let mut hello = vec![0; Message::Hello(Node::new("a@h", 1).hello.encode()).encode().len()];
        far.read_exact(&mut hello).await.unwrap();
        far.write_all(&hello).await.unwrap();
        let mut rest = Vec::new();
        far.read_to_end(&mut rest).await.unwrap();
        rest
    };
    let shake = async {
        let shaken = dialer.shake(Side::Dialer, &mut near).await;
        drop(near);
        shaken
    };
    let (shaken, rest) = tokio::join!(shake, echo);
    assert_eq!(refusal(shaken), Refusal::OwnNode);
    assert_eq!(rest, Message::Refusal(RefusalCode::OwnNode).encode());
}

#[tokio::test]
async fn own_proof_sent_back_proves_nothing() {
    let (mut near, mut far) = duplex(64 * 1024);
    let dialer = Node::new("a@h", 1);
    let length = Message::Hello(dialer.hello.encode()).encode().len();
    let imposter = async move {
        let mut hello = vec![0; length];
        far.read_exact(&mut hello).await.unwrap();
        let own = Message::Hello(Node::new("b@h", 2).hello.encode());
        far.write_all(&own.encode()).await.unwrap();
        let mut proof = [0; 35];
        far.read_exact(&mut proof).await.unwrap();
        far.write_all(&proof).await.unwrap();
        far
    };
    let (shaken, _far) = tokio::join!(dialer.shake(Side::Dialer, &mut near), imposter);
    assert_eq!(refusal(shaken), Refusal::Secret);
}

#[tokio::test]
async fn recorded_dialogue_proves_nothing() {
    let (a, b) = (Node::new("a@h", 1), Node::new("b@h", 2));
    let (ours, theirs) = (a.hello.encode(), b.hello.encode());
    let transcript = Transcript { dialer: &ours, acceptor: &theirs, exporter: None };
    let proof = transcript.proof(&a.secret, Side::Dialer);
    let recorded = [Message::Hello(ours.clone()).encode(), Message::Proof(proof).encode()].concat();
    // The acceptor of the recording.
    assert_eq!(told(&recorded).await.unwrap().1, "a@h");
    // The same node with another nonce.
    let (mut near, mut far) = duplex(64 * 1024);
    near.write_all(&recorded).await.unwrap();
    let again = Node::new("b@h", 3).shake(Side::Acceptor, &mut far).await;
    assert_eq!(refusal(again), Refusal::Secret);
}

#[tokio::test]
async fn handshake_that_is_cut_anywhere_is_closed() {
    let (a, b) = (Node::new("a@h", 1), Node::new("b@h", 2));
    let (ours, theirs) = (a.hello.encode(), b.hello.encode());
    let transcript = Transcript { dialer: &ours, acceptor: &theirs, exporter: None };
    let proof = transcript.proof(&a.secret, Side::Dialer);
    let whole = [Message::Hello(ours.clone()).encode(), Message::Proof(proof).encode()].concat();
    for length in 0..whole.len() {
        let cut = told(&whole[..length]).await;
        assert!(matches!(cut, Err(HandshakeError::Io(_))), "{length}: {cut:?}");
        let mut changed = whole.clone();
        changed[length] ^= 1;
        assert!(told(&changed).await.is_err(), "{length}");
    }
}

#[tokio::test]
async fn strangers_are_told_from_nodes() {
    for (bytes, expected) in [
        (&b"\x16\x03\x01\x02\x00\x01\x00"[..], Refusal::SpeaksTls),
        (b"GET / HTTP/1.1\r\n\r\n", Refusal::NotALink),
        (b"AMQP\x00\x00\x09\x01", Refusal::NotALink),
        (b"\x01\xff\xff", Refusal::TooLong),
        (b"\x02\x20\x00aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", Refusal::Malformed),
        (b"\x01\x03\x00abc", Refusal::NotALink),
        (b"\x03\x01\x00\x05", Refusal::FromPeer(RefusalCode::Secret)),
    ] {
        assert_eq!(refusal(told(bytes).await), expected);
    }
}

/// A stranger who sends a lot is not read.
#[tokio::test]
async fn few_bytes_are_read_before_the_proof() {
    let (mut near, mut far) = duplex(256 * 1024);
    let hello = Message::Hello(Node::new("a@h", 1).hello.encode()).encode();
    for flood in [[&hello[..], &[2; 64 * 1024]].concat(), hello.repeat(500)] {
        near.write_all(&flood).await.unwrap();
        refusal(Node::new("b@h", 2).shake(Side::Acceptor, &mut far).await);
        let mut room = vec![0; 256 * 1024];
        let mut left = 0;
        while left + HANDSHAKE_BYTES_MAX < flood.len() {
            left += far.read(&mut room).await.unwrap();
        }
        // What is left is the next flood's.
        (near, far) = duplex(256 * 1024);
    }
}
