//! Random lines of everything that clients, operators and time can do to a few queues.

use proptest::prelude::*;
use proptest::sample::select;

/// A delayed exchange.
const DELAYED: &str = "c: exchange d x-delayed-message durable x-delayed-type=direct";

/// A word or, more often, nothing.
fn maybe(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::option::weighted(0.25, select(words)).prop_map(|word| match word {
        Some(word) => format!(" {word}"),
        None => String::new(),
    })
}

fn actor() -> impl Strategy<Value = &'static str> {
    select(&["c.1:", "c.1:", "c.2:", "a.1:"][..])
}

fn queue() -> impl Strategy<Value = &'static str> {
    select(&["q0", "q1", "q2", "q3"][..])
}

fn declare(queue: impl Strategy<Value = &'static str>) -> impl Strategy<Value = String> {
    let classic = (
        select(&["", "durable", "durable", "exclusive", "auto-delete"][..]),
        maybe(&[
            "x-max-priority=3",
            "x-overflow=reject-publish",
            "x-overflow=reject-publish-dlx",
            "x-delivery-limit=1 x-delivery-limit-count=acquired",
            "x-delayed-retry-type=all x-delayed-retry-schedule=10,30",
        ]),
    );
    let quorum = (
        Just("durable x-queue-type=quorum"),
        prop_oneof![
            maybe(&["x-overflow=reject-publish", "x-delivery-limit=1", "x-consumer-timeout=25"]),
            Just(" x-dead-letter-strategy=at-least-once x-overflow=reject-publish".to_owned()),
            Just(
                " x-delayed-retry-type=all x-delayed-retry-min=10 x-delayed-retry-max=30"
                    .to_owned()
            ),
            Just(
                " x-delayed-retry-type=all x-delayed-retry-min=10 x-delayed-retry-multiplier=2"
                    .to_owned()
            ),
        ],
    );
    let dead_letters = maybe(&[
        "x-dead-letter-exchange= x-dead-letter-routing-key=q0",
        "x-dead-letter-exchange= x-dead-letter-routing-key=q1",
        "x-dead-letter-exchange=",
        "x-dead-letter-exchange=x",
        "x-dead-letter-exchange=y x-dead-letter-routing-key=a.b",
    ]);
    let limits = maybe(&["x-max-length=0", "x-max-length=2", "x-max-length-bytes=8"]);
    let ttl = maybe(&["x-message-ttl=0", "x-message-ttl=30", "x-message-ttl=100"]);
    let lease = maybe(&["x-expires=40", "x-expires=150"]);
    let more = maybe(&["x-single-active-consumer=true", "x-expiry-order=head"]);
    let others = (dead_letters, limits, ttl, lease, more);
    (actor(), queue, prop_oneof![classic.boxed(), quorum.boxed()], others).prop_map(
        |(actor, queue, (kind, own), (dead_letters, limits, ttl, lease, more))| {
            format!("{actor} declare {queue} {kind}{own}{dead_letters}{limits}{ttl}{lease}{more}")
        },
    )
}

fn publish() -> impl Strategy<Value = String> {
    let to = select(&["- q0", "- q1", "- q2", "- q3", "x k", "y a.b", "z a"][..]);
    let body = select(&["m", "m", "m", "long-body", "600000xB"][..]);
    let expiration = maybe(&["expiration=0", "expiration=20", "expiration=60"]);
    let priority = maybe(&["priority=1", "priority=9"]);
    let more =
        maybe(&["persistent", "persistent", "mandatory", "CC=[q1,q2]", "BCC=[q3]", "times=5"]);
    let delay = maybe(&["x-opt-delivery-delay=15", "x-opt-delivery-delay=40", "x-delay=25"]);
    let more = (more, delay).prop_map(|(more, delay)| more + &delay);
    (actor(), to, body, expiration, priority, more).prop_map(
        |(actor, to, body, expiration, priority, more)| {
            format!("{actor} publish {to} {body}{expiration}{priority}{more}")
        },
    )
}

fn consume() -> impl Strategy<Value = String> {
    let tag = select(&["t1", "t2", "t3", "n1 no-ack", "n2 no-ack"][..]);
    let more = maybe(&["x-priority=5", "x-priority=-1", "exclusive", "x-consumer-timeout=15"]);
    (actor(), queue(), tag, more)
        .prop_map(|(actor, queue, tag, more)| format!("{actor} consume {queue} {tag}{more}"))
}

fn settle() -> impl Strategy<Value = String> {
    let how = select(&["ack", "ack", "nack", "nack requeue", "reject", "reject requeue"][..]);
    (actor(), how, 0..8_usize, maybe(&["multiple"])).prop_map(|(actor, how, which, multiple)| {
        let (verb, requeue) = how.split_once(' ').unwrap_or((how, ""));
        let multiple = if verb == "reject" { "" } else { multiple.as_str() };
        format!("{actor} {verb} @{which} {requeue}{multiple}").trim_end().to_owned()
    })
}

fn topology() -> impl Strategy<Value = String> {
    let from = select(&["x -", "x -", "y a.b", "y a.#", "y #.*.#", "z 2", "z 5", "d a"][..]);
    prop_oneof![
        4 => select(&["c: exchange x fanout", "c: exchange y topic", "c: exchange z x-consistent-hash", DELAYED][..])
            .prop_map(str::to_owned),
        6 => (actor(), queue(), from.clone())
            .prop_map(|(actor, queue, from)| format!("{actor} bind {queue} {from}")),
        1 => queue().prop_map(|queue| format!("c: bind {queue} amq.rabbitmq.trace #")),
        2 => (actor(), queue(), from)
            .prop_map(|(actor, queue, from)| format!("{actor} unbind {queue} {from}")),
        2 => select(&["c: bind-exchange x y a", "c: bind-exchange y x -", "c: bind-exchange z x -", "c: bind-exchange d x -", "c: bind-exchange x d a"][..])
            .prop_map(str::to_owned),
        1 => (actor(), select(&["x", "y", "z", "d"][..]))
            .prop_map(|(actor, exchange)| format!("{actor} delete-exchange {exchange}")),
        2 => (actor(), queue()).prop_map(|(actor, queue)| format!("{actor} delete {queue}")),
        2 => (actor(), queue()).prop_map(|(actor, queue)| format!("{actor} purge {queue}")),
    ]
}

fn redrive() -> impl Strategy<Value = String> {
    let to =
        select(&["origin", "origin", "first", "queue=q1", "exchange=x", "exchange=y key=a.b"][..]);
    (actor(), queue(), to, maybe(&["limit=1", "limit=3"]))
        .prop_map(|(actor, queue, to, limit)| format!("{actor} redrive {queue} {to}{limit}"))
}

fn policy() -> impl Strategy<Value = String> {
    let definition = select(
        &[
            "message-ttl=0",
            "message-ttl=20",
            "message-ttl=1000000000000000",
            "expires=30",
            "max-length=1",
            "max-length=3 overflow=reject-publish",
            "dead-letter-exchange=x",
            "expiry-order=head",
            "delivery-limit=0",
            "dead-letter-strategy=at-least-once",
            "alternate-exchange=x",
        ][..],
    );
    let pattern = select(&[".*", "^q[01]$", "^q2$"][..]);
    prop_oneof![
        3 => (select(&["p", "r"][..]), pattern, definition)
            .prop_map(|(name, pattern, definition)| format!("policy {name} {pattern} {definition}")),
        1 => select(&["clear-policy p", "clear-policy r"][..]).prop_map(str::to_owned),
    ]
}

fn channel() -> impl Strategy<Value = String> {
    let what = select(
        &[
            "cancel t1",
            "cancel t2",
            "cancel n1",
            "recover",
            "qos 0",
            "qos 1",
            "qos 2 global",
            "qos 0 global",
            "confirm-select",
            "tx-select",
            "commit",
            "commit",
            "commit",
            "rollback",
            "rollback",
            "close-channel",
            "backlog 0",
            "backlog 0",
            "backlog 1048576",
            "consume amq.rabbitmq.reply-to n9 no-ack",
        ][..],
    );
    (actor(), what).prop_map(|(actor, what)| format!("{actor} {what}"))
}

pub(crate) fn line() -> impl Strategy<Value = String> {
    let get = (actor(), queue(), maybe(&["no-ack"]))
        .prop_map(|(actor, queue, no_ack)| format!("{actor} get {queue}{no_ack}"));
    let ends = select(&["c:", "a:"][..]);
    prop_oneof![
        8 => declare(queue()),
        20 => publish(),
        8 => consume(),
        5 => get,
        14 => settle(),
        9 => topology(),
        4 => policy(),
        6 => redrive(),
        8 => channel(),
        5 => select(&["c.2: commit", "c.2: rollback"][..]).prop_map(str::to_owned),
        1 => (ends.clone(), select(&["force-close bye", "disconnect"][..]))
            .prop_map(|(client, how)| format!("{client} {how}")),
        8 => (1..40_u64).prop_map(|millis| format!("sleep {millis}")),
        2 => (1..60_u64).prop_map(|millis| format!("drift {millis}")),
        2 => Just("tick".to_owned()),
        2 => select(&["alarm on", "alarm off", "alarm off"][..]).prop_map(str::to_owned),
        1 => select(&["tracing on", "tracing on", "tracing off"][..]).prop_map(str::to_owned),
    ]
}

/// The first lines of every history: four queues, three exchanges, and channels in every mode.
pub(crate) fn beginning() -> impl Strategy<Value = Vec<String>> {
    let queues = ["q0", "q1", "q2", "q3"].map(|name| declare(Just(name)));
    let notify = select(&["set cancel-notify", "set no-cancel-notify"][..]);
    (notify, queues).prop_map(|(notify, queues)| {
        let others = [
            "c: exchange x fanout",
            "c: exchange y topic",
            "c: exchange z x-consistent-hash",
            DELAYED,
            "c: bind q0 d a",
            "c: bind q1 x -",
            "c: bind q2 x -",
            "c: bind q2 y a.#",
            "c: bind q3 y #.b",
            "c: bind q0 z 2",
            "c.2: tx-select",
            "a: confirm-select",
        ];
        let others = others.map(str::to_owned);
        std::iter::once(notify.to_owned()).chain(queues).chain(others).collect()
    })
}
