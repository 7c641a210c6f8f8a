//! Histories: lines of scripts in sequence, with any result.
//!
//! Nothing is expected but that the invariants hold after every line and that the log tells the
//! truth. What only a client or a clock can know is filled in: `@3` is the third outstanding delivery
//! of the channel, or the next best one; `sleep 20` and `drift 20` are `at` and `late` that many
//! milliseconds later. A client agrees at once to every close of the broker.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;

use amqp::method::MethodId;
use broker::{ChannelNumber, Command, ConnectionId, Outgoing, Request, VhostOptions};

use super::World;

/// Runs a history; panics with the script of it if an invariant breaks.
pub(crate) fn survive(lines: &[String], options: VhostOptions) {
    let mut history = History {
        world: World::with(options),
        outstanding: BTreeMap::new(),
        transactional: BTreeSet::new(),
        now_ms: 0,
    };
    let mut script = String::new();
    for line in lines {
        let Some(line) = history.fill_in(line) else {
            continue;
        };
        script.push_str(&line);
        script.push('\n');
        let run = std::panic::catch_unwind(AssertUnwindSafe(|| history.run(&line)));
        assert!(run.is_ok(), "the last line of this breaks something:\n{script}");
    }
    let world = &mut history.world;
    let end = std::panic::catch_unwind(AssertUnwindSafe(|| world.check_replica("the end", true)));
    assert!(end.is_ok(), "a replica differs after this:\n{script}");
}

struct History {
    world: World,
    /// Tags that a client may settle.
    outstanding: BTreeMap<(ConnectionId, ChannelNumber), Vec<u64>>,
    /// Channels in tx mode.
    transactional: BTreeSet<(ConnectionId, ChannelNumber)>,
    now_ms: u64,
}

impl History {
    /// The line as a script has it; none if it makes no sense now.
    fn fill_in(&mut self, line: &str) -> Option<String> {
        if let Some((verb, millis)) = line.split_once(' ')
            && let Ok(millis) = millis.parse::<u64>()
            && (verb == "sleep" || verb == "drift")
        {
            self.now_ms += millis;
            let verb = if verb == "sleep" { "at" } else { "late" };
            return Some(format!("{verb} {}ms", self.now_ms));
        }
        let (client, channel) = super::Words::new(line).actor();
        let connection = self.world.clients.get(&client).copied();
        let words: Vec<&str> = line.split(' ').collect();
        if self.is_pointless(connection, channel, &words) {
            return None;
        }
        if channel == 2 && self.has_no_transaction(connection) {
            return Some(format!("{client}.2: tx-select"));
        }
        let Some((before, after)) = line.split_once('@') else {
            return Some(line.to_owned());
        };
        let (which, after) = after.split_once(' ').unwrap_or((after, ""));
        let at = (connection?, ChannelNumber(channel));
        let tags = self.outstanding.get_mut(&at).filter(|tags| !tags.is_empty())?;
        let which = which.parse::<usize>().unwrap() % tags.len();
        let tag = tags[which];
        if after.contains("multiple") {
            tags.drain(..=which);
        } else {
            tags.remove(which);
        }
        Some(format!("{before}{tag} {after}"))
    }

    /// Channel 2 is for transactions.
    fn has_no_transaction(&self, connection: Option<ConnectionId>) -> bool {
        let at = connection.map(|connection| (connection, ChannelNumber(2)));
        at.is_none_or(|at| !self.transactional.contains(&at))
    }

    /// True if the line would only be refused, because it names something missing or declares something
    /// existing.
    fn is_pointless(&self, connection: Option<ConnectionId>, channel: u16, words: &[&str]) -> bool {
        let is_there = |name: &&str| match *name {
            "q0" | "q1" | "q2" | "q3" => self.world.vhost.queue(name).is_some(),
            "x" | "y" | "z" | "d" => self.world.vhost.exchange(name).is_some(),
            _ => true,
        };
        match words {
            [_, "declare" | "exchange", name, ..] => is_there(name),
            [_, "disconnect"] => connection.is_none(),
            [_, "commit" | "rollback"] => channel != 2 || self.has_no_transaction(connection),
            ["policy", ..] => false,
            ["transfer" | "failover" | "digest"] => self.world.follower.is_none(),
            _ => !words.iter().all(is_there),
        }
    }

    fn run(&mut self, line: &str) {
        self.world.run(line);
        let words: Vec<&str> = line.split(' ').collect();
        if matches!(words[..], ["transfer" | "failover"]) {
            self.outstanding.clear();
            self.transactional.clear();
        }
        let no_ack_get = words.contains(&"get") && words.contains(&"no-ack");
        let forgets = ["recover", "rollback", "commit"].iter().any(|verb| words.contains(verb));
        for (connection, channel, outgoing) in std::mem::take(&mut self.world.told) {
            let tags = self.outstanding.entry((connection, channel)).or_default();
            match outgoing {
                Outgoing::Deliver { consumer_tag, delivery } if !consumer_tag.starts_with('n') => {
                    tags.push(delivery.tag.0);
                }
                Outgoing::GetOk { delivery, .. } if !no_ack_get => tags.push(delivery.tag.0),
                Outgoing::RecoverOk if forgets => tags.clear(),
                Outgoing::TxSelectOk => {
                    self.transactional.insert((connection, channel));
                }
                Outgoing::ChannelCloseOk => {
                    tags.clear();
                    self.transactional.remove(&(connection, channel));
                }
                Outgoing::ChannelClose { .. } => {
                    tags.clear();
                    self.transactional.remove(&(connection, channel));
                    let command = Command::ChannelCloseOk;
                    let request = Request { channel, method: MethodId::NONE, command };
                    self.world.vhost.apply(self.world.now(), connection, request);
                }
                Outgoing::ConnectionClose { .. } => {
                    self.world.vhost.close_connection(self.world.now(), connection);
                    self.world.clients.retain(|_, known| *known != connection);
                    self.outstanding.retain(|(known, _), _| *known != connection);
                }
                _ => {}
            }
        }
    }
}
