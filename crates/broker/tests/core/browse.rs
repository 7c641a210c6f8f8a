//! Browsing unsettled deliveries, on any channel, while clients connect and disconnect.

use std::collections::BTreeSet;
use std::sync::Arc;

use amqp::method::MethodId;
use amqp::table::Table;
use broker::access::Access;
use broker::time::Now;
use broker::{
    BrowseCursor, BrowsedMessage, ChannelNumber, Command, ConnectionId, Content, DeclareQueue,
    DeliveryTag, MessageState, Outcome, Publish, Request, Vhost, VhostOptions,
};

const CHANNELS: [u16; 3] = [1, 5, 9];

/// A vhost with the queues q and other, each with so many messages.
fn vhost_with(messages: u64) -> (Vhost, ConnectionId) {
    let mut vhost = Vhost::new("/", [7; 32], VhostOptions::default());
    let first = connect(&mut vhost);
    let arguments = Table::default();
    for queue in ["q", "other"] {
        let declare = DeclareQueue {
            queue,
            passive: false,
            durable: false,
            exclusive: false,
            auto_delete: false,
            nowait: true,
            arguments: arguments.as_ref(),
        };
        apply(&mut vhost, (first, 1), Command::DeclareQueue(declare));
        for _ in 0..messages {
            let content = Content::Assembled { properties: vec![0, 0].into(), body: "m".into() };
            let publish = Publish {
                exchange: b"".into(),
                routing_key: queue.as_bytes().into(),
                mandatory: false,
                content,
            };
            apply(&mut vhost, (first, 1), Command::Publish(publish));
        }
    }
    (vhost, first)
}

fn apply(vhost: &mut Vhost, (connection, channel): (ConnectionId, u16), command: Command<'_>) {
    let request = Request { channel: ChannelNumber(channel), method: MethodId::NONE, command };
    vhost.apply(Now::default(), connection, request);
    vhost.drain_effects();
}

/// A client with some channels.
fn connect(vhost: &mut Vhost) -> ConnectionId {
    let access = Access::matching("guest".into(), ".*").unwrap();
    let connection = vhost.open_connection(Arc::new(access), true);
    for channel in CHANNELS {
        apply(vhost, (connection, channel), Command::OpenChannel);
    }
    connection
}

/// Gets two messages of q and one of the other queue on every channel.
fn take(vhost: &mut Vhost, connection: ConnectionId) {
    for channel in CHANNELS {
        for queue in ["q", "other", "q"] {
            apply(vhost, (connection, channel), Command::Get { queue, no_ack: false });
        }
    }
}

/// Looks at up to `count` deliveries of q from a cursor on.
fn look(
    vhost: &Vhost,
    from: BrowseCursor,
    count: usize,
) -> (Vec<BrowsedMessage>, Option<BrowseCursor>) {
    let queue = vhost.queue_id("q").unwrap();
    let browsed = vhost.browse(queue, from, &[], count).unwrap();
    (browsed.messages, browsed.next)
}

/// All of them, so many at a time.
fn look_at_all(vhost: &Vhost, mut next: Option<BrowseCursor>, count: usize) -> Vec<BrowsedMessage> {
    let mut all = Vec::new();
    while let Some(from) = next {
        let (messages, behind) = look(vhost, from, count);
        assert_ne!(behind, Some(from), "a look leads somewhere");
        all.extend(messages);
        next = behind;
    }
    all
}

fn seqs(messages: &[BrowsedMessage]) -> BTreeSet<u64> {
    messages.iter().map(|message| message.entry.id.seq).collect()
}

const START: fn() -> BrowseCursor = || BrowseCursor::start(MessageState::Unacknowledged);

#[test]
fn browse_shows_each_delivery_once() {
    let (mut vhost, first) = vhost_with(100);
    let connections = [first, connect(&mut vhost), connect(&mut vhost)];
    connections.iter().for_each(|connection| take(&mut vhost, *connection));
    for count in 1..30 {
        let messages = look_at_all(&vhost, Some(START()), count);
        assert_eq!(messages.len(), 18, "{count} at a time");
        assert_eq!(seqs(&messages), (1..=18).collect());
        let held_by = |message: &BrowsedMessage| message.held_by.clone().unwrap();
        assert!(messages.iter().map(held_by).all(|held| held.tag != DeliveryTag(2)));
        let holders = messages.iter().map(held_by).map(|held| (held.connection, held.channel));
        assert_eq!(holders.collect::<BTreeSet<_>>().len(), 9);
    }
    // Each of them says where to go on behind it.
    let messages = look_at_all(&vhost, Some(START()), 5);
    for (number, message) in messages.iter().enumerate() {
        let rest = look_at_all(&vhost, Some(message.behind), 5);
        assert_eq!(rest.len(), messages.len() - number - 1);
    }
}

#[test]
fn browse_shows_deliveries_in_a_transaction_once() {
    let (mut vhost, first) = vhost_with(100);
    apply(&mut vhost, (first, 5), Command::TxSelect);
    take(&mut vhost, first);
    let settle = Command::Settle { tag: DeliveryTag(3), multiple: true, outcome: Outcome::Ack };
    apply(&mut vhost, (first, 5), settle);
    apply(&mut vhost, (first, 5), Command::Get { queue: "q", no_ack: false });
    for count in 1..12 {
        let messages = look_at_all(&vhost, Some(START()), count);
        assert_eq!((messages.len(), seqs(&messages).len()), (7, 7), "{count} at a time");
    }
    apply(&mut vhost, (first, 5), Command::TxCommit);
    assert_eq!(look_at_all(&vhost, Some(START()), 3).len(), 5);
}

#[test]
fn browse_shows_all_deliveries_while_clients_come_and_go() {
    for gone in 0..3 {
        for looked in 1..20 {
            let (mut vhost, first) = vhost_with(100);
            let connections = [first, connect(&mut vhost), connect(&mut vhost)];
            connections.iter().for_each(|connection| take(&mut vhost, *connection));
            let (mut messages, next) = look(&vhost, START(), looked);
            vhost.close_connection(Now::default(), connections[gone]);
            vhost.drain_effects();
            // It gets the place of the one that has gone, and what that has left.
            let newcomer = connect(&mut vhost);
            take(&mut vhost, newcomer);
            messages.extend(look_at_all(&vhost, next, 4));
            let of = |connection| {
                let held = messages.iter().filter_map(|message| message.held_by.as_ref());
                held.filter(|held| held.connection == connection).count()
            };
            for stays in connections.iter().filter(|known| **known != connections[gone]) {
                assert_eq!(of(*stays), 6, "{gone} has gone after {looked}");
            }
            assert!(of(newcomer) <= 6);
        }
    }
}
