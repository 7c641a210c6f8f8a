//! Runs scenarios: parses their lines, applies them to a vhost, writes down what comes out.

mod parse;
mod render;
mod show;
mod values;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use amqp::reply_code::ReplyCode;
use broker::access::{Access, PermissionPattern, Permissions, TopicPermission};
use broker::refusal::Refusal;
use broker::time::{Now, Time};
use broker::{
    ApplyTo, ChannelNumber, ConnectionId, Definition, Effect, Pattern, Policy, PolicyKind, Vhost,
    VhostOptions,
};
use parse::Words;

/// Replays every scenario of a file and returns the file as it should be, with their number.
pub(crate) fn replay(text: &str) -> (String, usize) {
    let mut out = String::new();
    let mut world = World::new();
    let mut scenarios = 0;
    let mut scenario = "";
    for line in text.lines() {
        if line.starts_with("  ") {
            continue;
        }
        writeln!(out, "{line}").unwrap();
        if line.starts_with("== ") {
            world = World::new();
            scenarios += 1;
            scenario = line;
        } else if !line.is_empty() && !line.starts_with('#') {
            let effects = std::panic::catch_unwind(AssertUnwindSafe(|| world.run(line)));
            let effects = effects.unwrap_or_else(|_| panic!("in `{scenario}`, at `{line}`"));
            for effect in effects {
                writeln!(out, "  {effect}").unwrap();
            }
        }
    }
    (out, scenarios)
}

/// The blocks of effects that differ, each with its scenario and command. Commands are the same in
/// both texts, so the blocks between them can be compared one by one.
pub(crate) fn difference(expected: &str, actual: &str) -> String {
    let mut out = String::new();
    let mut scenario = "";
    for ((command, wanted), (_, got)) in blocks(expected).into_iter().zip(blocks(actual)) {
        if command.starts_with("== ") {
            scenario = command;
        }
        if wanted != got {
            writeln!(out, "{scenario}\n{command}").unwrap();
            wanted.iter().for_each(|line| writeln!(out, "-{line}").unwrap());
            got.iter().for_each(|line| writeln!(out, "+{line}").unwrap());
        }
    }
    out
}

/// Each command with the effects below it.
fn blocks(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut blocks: Vec<(&str, Vec<&str>)> = vec![("", Vec::new())];
    for line in text.lines() {
        match line.starts_with("  ") {
            true => blocks.last_mut().unwrap().1.push(line),
            false => blocks.push((line, Vec::new())),
        }
    }
    blocks
}

/// A vhost and the clients of one scenario.
struct World {
    vhost: Vhost,
    now_us: u64,
    clients: BTreeMap<String, ConnectionId>,
    access: BTreeMap<String, Arc<Access>>,
    cancel_notify: bool,
    shows_log: bool,
    shows_deaths: bool,
    /// Commands are collected into one batch.
    batches: bool,
    /// Records become durable only when the script says so.
    holds_log: bool,
}

impl World {
    fn new() -> Self {
        Self::with(VhostOptions::default())
    }

    fn with(options: VhostOptions) -> Self {
        Self {
            vhost: Vhost::new("/", [7; 32], options),
            now_us: 0,
            clients: BTreeMap::new(),
            access: BTreeMap::new(),
            cancel_notify: true,
            shows_log: false,
            shows_deaths: false,
            batches: false,
            holds_log: false,
        }
    }

    fn now(&self) -> Now {
        Now {
            time: Time::from_micros(1_000_000_000_000 + self.now_us),
            wall_ms: 1_000_000 + self.now_us / 1000,
        }
    }

    /// Runs one line and returns what it did.
    fn run(&mut self, line: &str) -> Vec<String> {
        let mut words = Words::new(line);
        let (client, channel) = words.actor();
        let verb = words.next();
        let mut out = Vec::new();
        match verb.as_str() {
            "batch" => self.batches = true,
            "end" => self.batches = false,
            "at" => self.sleep_until(words.micros(), &mut out),
            "late" => self.now_us = words.micros(),
            "tick" => self.vhost.tick(self.now()),
            "set" => self.set(&mut words),
            "show" => out.push(show::queue(&self.vhost, &words.next())),
            "policies" => out.push(show::policies(&self.vhost, &words.next())),
            "consumers" => out.push(show::consumers(&self.vhost, &words.next())),
            "counters" => out.push(show::counters(&self.vhost)),
            "policy" => self.policy(PolicyKind::User, &mut words, &mut out),
            "operator-policy" => self.policy(PolicyKind::Operator, &mut words, &mut out),
            "clear-policy" => self.clear_policy(PolicyKind::User, &words.next(), &mut out),
            "clear-operator-policy" => {
                self.clear_policy(PolicyKind::Operator, &words.next(), &mut out);
            }
            "node" => self.execute(&mut words, &mut out),
            "force-close" => {
                let connection = self.connection(&client);
                let refusal = Refusal::new(ReplyCode::ConnectionForced, words.next());
                self.vhost.force_close(self.now(), connection, refusal);
            }
            "user" => self.user(&mut words),
            "backlog" => {
                let bytes = words.next().parse().unwrap();
                let connection = self.connection(&client);
                self.vhost.set_backlog(self.now(), connection, bytes);
            }
            "disconnect" => {
                let connection = self.clients.remove(&client).expect("a client that is there");
                self.vhost.close_connection(self.now(), connection);
            }
            "durable" => {
                let lsn = words.next();
                let lsn = lsn.parse().map_or_else(|_| self.vhost.last_lsn(), broker::Lsn);
                self.vhost.durable(lsn);
            }
            "stop" => self.vhost.cancel_consumers(self.now()),
            _ => self.request(&client, channel, &verb, &mut words),
        }
        assert!(words.is_empty(), "what is `{}` in `{line}`?", words.rest());
        if self.batches {
            return out;
        }
        self.settle(&mut out);
        let broken = self.vhost.broken_invariants();
        assert!(broken.is_empty(), "after `{line}`: {broken:?}");
        out
    }

    fn request(&mut self, client: &str, channel: u16, verb: &str, words: &mut Words) {
        let connection = self.connection(client);
        let number = ChannelNumber(channel);
        let known = self.vhost.connections().find(|(id, _)| *id == connection);
        let is_open = known.is_some_and(|(_, c)| c.channels().any(|(n, _)| n == number));
        if !is_open && verb != "open" && verb != "raw" {
            let open = parse::Owned::simple(broker::Command::OpenChannel);
            self.vhost.apply(self.now(), connection, open.request(channel));
            self.vhost.drain_effects();
        }
        let verb = if verb == "raw" { words.next() } else { verb.to_owned() };
        let times = words.named("times").map_or(1, |times| times.parse().unwrap());
        let command = parse::command(&verb, words);
        for _ in 0..times {
            self.vhost.apply(self.now(), connection, command.request(channel));
        }
    }

    /// A command of the node itself, which is answered by its result alone.
    fn execute(&mut self, words: &mut Words, out: &mut Vec<String>) {
        let verb = words.next();
        let command = parse::command(&verb, words);
        if let Err(refusal) = self.vhost.execute(self.now(), command.request(0).command) {
            out.push(format!("refused {} {refusal}", refusal.code.code()));
        }
    }

    fn connection(&mut self, client: &str) -> ConnectionId {
        if let Some(connection) = self.clients.get(client) {
            return *connection;
        }
        let access = self.access.get(client).cloned().unwrap_or_else(|| access(client, [".*"; 3]));
        let connection = self.vhost.open_connection(access, self.cancel_notify);
        self.clients.insert(client.to_owned(), connection);
        connection
    }

    fn set(&mut self, words: &mut Words) {
        let word = words.next();
        let mut options = VhostOptions::default();
        match word.as_str() {
            "no-cancel-notify" => self.cancel_notify = false,
            "cancel-notify" => self.cancel_notify = true,
            "show-log" => self.shows_log = true,
            "show-deaths" => self.shows_deaths = true,
            "hold-log" => self.holds_log = true,
            "no-global-qos" => options.permits_global_qos = false,
            "consumers-max" => {
                options.consumers_per_channel_max = Some(words.next().parse().unwrap());
            }
            other => panic!("cannot set {other}"),
        }
        if options != VhostOptions::default() {
            *self = Self::with(options);
        }
    }

    fn user(&mut self, words: &mut Words) {
        let name = words.next();
        let patterns = [words.next(), words.next(), words.next()];
        let mut access = (*access(&name, [&patterns[0], &patterns[1], &patterns[2]])).clone();
        while let Some(word) = words.try_next() {
            match word.as_str() {
                "impersonator" => access.impersonator = true,
                "topic" => access.topic_permissions.push(TopicPermission {
                    exchange: words.next().as_str().into(),
                    write: PermissionPattern::new(&words.next()).unwrap(),
                    read: PermissionPattern::new(&words.next()).unwrap(),
                }),
                other => panic!("a user has no {other}"),
            }
        }
        let access = Arc::new(access);
        if let Some(connection) = self.clients.get(&name) {
            self.vhost.set_access(*connection, Arc::clone(&access));
        }
        self.access.insert(name, access);
    }

    /// `policy NAME PATTERN key=value ...`; a complaint is shown instead.
    fn policy(&mut self, kind: PolicyKind, words: &mut Words, out: &mut Vec<String>) {
        let name = words.next();
        let pattern = match Pattern::new(&words.next()) {
            Ok(pattern) => pattern,
            Err(complaint) => {
                while words.try_next().is_some() {}
                return out.push(format!("invalid: {complaint}"));
            }
        };
        let (mut priority, mut apply_to, mut entries) = (0.0, ApplyTo::All, Vec::new());
        while let Some((key, value)) = words.pair() {
            match key.as_str() {
                "priority" => priority = value.parse().unwrap(),
                "apply-to" => match ApplyTo::parse(&value) {
                    Ok(value) => apply_to = value,
                    Err(complaint) => return out.push(format!("invalid: {complaint}")),
                },
                _ => entries.push((key, parse::policy_value(&value))),
            }
        }
        let definition = match Definition::parse(entries, kind) {
            Ok(definition) => definition,
            Err(complaint) => return out.push(format!("invalid: {complaint}")),
        };
        let name = name.as_str().into();
        let policy = Policy { name, pattern, apply_to, priority, definition };
        self.vhost.set_policy(self.now(), kind, policy);
    }

    fn clear_policy(&mut self, kind: PolicyKind, name: &str, out: &mut Vec<String>) {
        if !self.vhost.clear_policy(self.now(), kind, name) {
            out.push("no such policy".to_owned());
        }
    }

    /// Lets time pass like the broker's timer does.
    fn sleep_until(&mut self, until_us: u64, out: &mut Vec<String>) {
        assert!(until_us >= self.now_us, "time does not run backwards");
        let base = Time::default().as_micros() + 1_000_000_000_000;
        while let Some(wake) = self.vhost.next_wake()
            && wake.as_micros() <= base + until_us
        {
            self.now_us = self.now_us.max(wake.as_micros().saturating_sub(base));
            self.vhost.tick(self.now());
            let mut effects = Vec::new();
            self.settle(&mut effects);
            let at = render::millis(self.now_us);
            out.extend(effects.into_iter().map(|effect| format!("{at} {effect}")));
        }
        self.now_us = until_us;
        // A stale wake-up changes nothing.
        self.vhost.tick(self.now());
    }

    /// Ends the batch: confirms are told, effects taken.
    fn settle(&mut self, out: &mut Vec<String>) {
        if !self.holds_log {
            self.vhost.durable(self.vhost.last_lsn());
        }
        self.vhost.flush();
        let names: BTreeMap<ConnectionId, &str> =
            self.clients.iter().map(|(name, id)| (*id, name.as_str())).collect();
        for effect in self.vhost.drain_effects() {
            match effect {
                Effect::Log { lsn, record, .. } if self.shows_log => {
                    out.push(format!("log {lsn}: {}", render::record(&record)));
                }
                Effect::Log { .. } => {}
                Effect::Stalled(connection) => {
                    out.push(format!("{} is stalled", names[&connection]));
                }
                Effect::Event(event) => out.push(format!("! {event:?}")),
                Effect::Send { connection, channel, outgoing } => {
                    let name = names.get(&connection).copied().unwrap_or("?");
                    let at = match (name, channel.0) {
                        ("c", 1) => String::new(),
                        ("c", 0) => "connection: ".to_owned(),
                        (name, 0) => format!("{name} connection: "),
                        (name, 1) => format!("{name}: "),
                        (name, channel) => format!("{name}.{channel}: "),
                    };
                    out.push(format!("{at}{}", render::outgoing(&outgoing, self.shows_deaths)));
                }
            }
        }
    }
}

fn access(user: &str, [configure, write, read]: [&str; 3]) -> Arc<Access> {
    let pattern = |text| PermissionPattern::new(text).unwrap();
    Arc::new(Access {
        user: user.into(),
        impersonator: false,
        permissions: Permissions {
            configure: pattern(configure),
            write: pattern(write),
            read: pattern(read),
        },
        topic_permissions: Vec::new(),
    })
}
