//! Topic exchanges against a matcher that tries everything.
//!
//! Lines of the input: `+KEY` binds the next queue, `-KEY` unbinds it again, anything else is a routing
//! key that is published with.

use amqp::method::MethodId;
use amqp::properties::Properties;
use amqp::table::TableRef;
use broker::time::Now;
use broker::{
    Bind, ChannelNumber, Command, ConnectionId, Content, DeclareQueue, Publish, Request, Vhost,
    VhostOptions,
};

use crate::users::access;

const EXCHANGE: &str = "amq.topic";
const QUEUES: [&str; 4] = ["q0", "q1", "q2", "q3"];

/// So many lines are looked at: bindings and keys that are tried with each other.
const LINES_MAX: usize = 48;

/// Checks a history of bindings and publishes.
pub fn check(input: &[u8]) {
    let mut exchange = Exchange::new();
    for (number, line) in input.split(|byte| *byte == b'\n').take(LINES_MAX).enumerate() {
        let queue = number % QUEUES.len();
        match line {
            [b'+', key @ ..] => exchange.bind(queue, key),
            [b'-', key @ ..] => exchange.unbind(key),
            key => exchange.publish(key),
        }
    }
}

struct Exchange {
    vhost: Vhost,
    publisher: ConnectionId,
    /// The queue and the key of each binding there is.
    bindings: Vec<(usize, String)>,
    expected: [u64; QUEUES.len()],
}

impl Exchange {
    fn new() -> Self {
        let mut vhost = Vhost::new("/", [3; 32], VhostOptions::default());
        for queue in QUEUES {
            let declare = DeclareQueue {
                queue,
                passive: false,
                durable: false,
                exclusive: false,
                auto_delete: false,
                nowait: false,
                arguments: TableRef::EMPTY,
            };
            vhost.execute(Now::default(), Command::DeclareQueue(declare)).unwrap();
        }
        let publisher = vhost.open_connection(access("guest", ".*"), false);
        let expected = [0; QUEUES.len()];
        let mut exchange = Self { vhost, publisher, bindings: Vec::new(), expected };
        exchange.say(Command::OpenChannel);
        exchange
    }

    /// The publisher says something on its channel.
    fn say(&mut self, command: Command<'_>) {
        let request = Request { channel: ChannelNumber(1), method: MethodId::NONE, command };
        self.vhost.apply(Now::default(), self.publisher, request);
        self.vhost.drain_effects();
    }

    fn bind(&mut self, queue: usize, key: &[u8]) {
        let Some(key) = short_text(key) else { return };
        let bind = |queue| Bind {
            destination: QUEUES[queue],
            source: EXCHANGE,
            routing_key: key,
            nowait: false,
            arguments: TableRef::EMPTY,
        };
        // Too many `#` in one key are refused.
        if self.vhost.execute(Now::default(), Command::BindQueue(bind(queue))).is_ok() {
            self.bindings.push((queue, key.to_owned()));
        }
    }

    /// Takes away the oldest binding with this key.
    fn unbind(&mut self, key: &[u8]) {
        let is_it = |(_, known): &(usize, String)| known.as_bytes() == key;
        let Some(at) = self.bindings.iter().position(is_it) else { return };
        let (queue, key) = self.bindings[at].clone();
        self.bindings.retain(|binding| *binding != (queue, key.clone()));
        let unbind = Bind {
            destination: QUEUES[queue],
            source: EXCHANGE,
            routing_key: &key,
            nowait: false,
            arguments: TableRef::EMPTY,
        };
        self.vhost.execute(Now::default(), Command::UnbindQueue(unbind)).unwrap();
    }

    fn publish(&mut self, key: &[u8]) {
        if key.len() > 255 {
            return;
        }
        let mut properties = Vec::new();
        Properties::default().encode(&mut properties);
        let publish = Publish {
            exchange: EXCHANGE.as_bytes().into(),
            routing_key: key.into(),
            mandatory: false,
            content: Content::Assembled { properties: properties.into(), body: Vec::new().into() },
        };
        self.say(Command::Publish(publish));
        let key_words = words(key);
        for (queue, expected) in self.expected.iter_mut().enumerate() {
            let mut keys = self.bindings.iter().filter(|(at, _)| *at == queue);
            *expected +=
                u64::from(keys.any(|(_, pattern)| matches(&words(pattern.as_bytes()), &key_words)));
        }
        let counts = QUEUES.map(|name| self.vhost.queue(name).unwrap().ready_count());
        assert_eq!(counts, self.expected, "{} with {:?}", key.escape_ascii(), self.bindings);
        let broken = self.vhost.broken_invariants();
        assert!(broken.is_empty(), "{broken:?}");
    }
}

/// Words between the dots; an empty key has none.
fn words(key: &[u8]) -> Vec<&[u8]> {
    key.split(|byte| *byte == b'.').filter(|_| !key.is_empty()).collect()
}

fn short_text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| text.len() <= 255)
}

/// One row per word of the pattern: whether it matches so many words of the key.
fn matches(pattern: &[&[u8]], words: &[&[u8]]) -> bool {
    let mut row = vec![false; words.len() + 1];
    row[0] = true;
    for word in pattern {
        let mut next = vec![false; words.len() + 1];
        for at in 0..=words.len() {
            next[at] = match *word {
                b"#" => row[at] || at > 0 && next[at - 1],
                b"*" => at > 0 && row[at - 1],
                word => at > 0 && row[at - 1] && words[at - 1] == word,
            };
        }
        row = next;
    }
    row[words.len()]
}
