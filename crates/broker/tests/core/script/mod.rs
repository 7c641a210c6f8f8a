//! Runs scenarios: parses their lines, applies them to a vhost, writes down what comes out.
//!
//! A line is `[client[.channel]:] verb words`. Clients and channels open by themselves; without a name
//! it is client `c` on channel 1, whose effects stand without a name, too. Verbs are AMQP's in short
//! (`parse` lists them), and `times=N` repeats one. Beside them:
//!
//! | verb | does |
//! | --- | --- |
//! | `at 250ms` | time passes and the timer fires whenever something is due |
//! | `late 250ms`, `tick` | time passes, but the timer does not fire; it fires once |
//! | `show QUEUE`, `consumers QUEUE`, `policies NAME`, `counters`, `deaths`, `channels`, `exchanges` | show the state |
//! | `policy`, `operator-policy`, `clear-policy`, `clear-operator-policy` | change policies |
//! | `alarm on`, `alarm off` | memory or disk is short, or no more |
//! | `tracing on`, `tracing off` | turns the firehose on or off |
//! | `user NAME CONFIGURE WRITE READ` | sets permissions, also of one who is connected |
//! | `backlog BYTES` | that many bytes wait for the client's socket |
//! | `batch`, `end` | the commands between them are flushed together |
//! | `durable N`, `durable all` | the log is durable so far, after `set hold-log` |
//! | `disconnect`, `force-close TEXT`, `stop` | the client goes, is sent away, the broker stops |
//! | `node COMMAND` | a command of the node itself |
//! | `raw COMMAND` | a command without opening the channel first |
//! | `transfer`, `failover` | a replica takes over, as planned or because the leader is lost (`set replicated`) |
//! | `digest` | the leader logs a digest, which its replica compares |
//! | `redrive QUEUE TO` | the messages that wait there go back (`redrive`) |
//! | `set ...` | options of the scenario; those of the vhost come first |
//! | `set resident` | nothing is put aside in this scenario, which counts on how much is done at once |

mod failover;
mod history;
mod lines;
mod parse;
mod redrive;
mod render;
mod setup;
mod show;
mod values;
mod words;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use amqp::reply_code::ReplyCode;
use broker::access::Access;
use broker::page::PageTask;
use broker::refusal::Refusal;
use broker::time::{Now, Time};
use broker::{ChannelNumber, ConnectionId, Effect, Lsn, Outgoing, PolicyKind, Vhost, VhostOptions};
pub(crate) use history::survive;
pub(crate) use lines::{beginning, line};
use setup::access;
use words::Words;

use crate::disk::log::check;
use crate::disk::{Disk, Follower, PageStore, Replay};

/// Replays every scenario of a file and returns the file as it should be, with the number of scenarios
/// and of the pages that were written.
pub(crate) fn replay(text: &str, base: VhostOptions) -> (String, usize, usize) {
    let mut out = String::new();
    let mut pages = 0;
    let mut world = World::with(base);
    let mut scenarios = 0;
    let mut scenario = "";
    for line in text.lines() {
        if line.starts_with("  ") {
            continue;
        }
        writeln!(out, "{line}").unwrap();
        if line.starts_with("== ") {
            end(&mut world, scenario);
            pages += world.page_store.written;
            world = World::with(base);
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
    end(&mut world, scenario);
    (out, scenarios, pages + world.page_store.written)
}

/// Ends a scenario: what is in its log must give the same again.
fn end(world: &mut World, scenario: &str) {
    let checked = std::panic::catch_unwind(AssertUnwindSafe(|| world.check_restart()));
    checked.unwrap_or_else(|_| panic!("at the end of `{scenario}`"));
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

/// The output that a scenario asks for beside that of clients.
#[derive(Default)]
struct Shows {
    /// The records for the log.
    log: bool,
    /// Death headers in full.
    deaths: bool,
}

/// A vhost and the clients of one scenario.
struct World {
    vhost: Vhost,
    now_us: u64,
    clients: BTreeMap<String, ConnectionId>,
    access: BTreeMap<String, Arc<Access>>,
    cancel_notify: bool,
    shows: Shows,
    /// Commands are collected into one batch.
    batches: bool,
    /// Records become durable only when the script says so.
    holds_log: bool,
    /// The options before those of the scenario.
    base: VhostOptions,
    /// The replica of a replicated vhost.
    follower: Option<Follower>,
    /// The entries that the log so far would restore.
    replay: Replay,
    disk: Disk,
    page_store: PageStore,
    /// Up to where the log is durable.
    durable: Lsn,
    /// Answers that wait for it.
    waiting: Vec<Effect>,
    /// Methods sent to clients that a history uses.
    told: Vec<(ConnectionId, ChannelNumber, Outgoing)>,
}

impl World {
    fn with(options: VhostOptions) -> Self {
        let mut vhost = Vhost::new("/", [7; 32], options);
        vhost.set_node_name("node");
        Self {
            vhost,
            now_us: 0,
            clients: BTreeMap::new(),
            access: BTreeMap::new(),
            cancel_notify: true,
            shows: Shows::default(),
            batches: false,
            holds_log: false,
            base: options,
            follower: options.delivers_after_commit.then(|| Follower::new(options)),
            replay: Replay::default(),
            disk: Disk::of(&options),
            page_store: PageStore::default(),
            durable: Lsn(0),
            waiting: Vec::new(),
            told: Vec::new(),
        }
    }

    fn now(&self) -> Now {
        Now {
            time: Time::from_micros(1_000_000_000_000 + self.now_us),
            wall_us: 1_000_000_000 + self.now_us,
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
            "full" => out.push(show::is_full(&self.vhost, &words.next())),
            "capacity" => {
                out.push(show::capacity(&self.vhost, &words.next(), self.now().time));
            }
            "policies" => out.push(show::policies(&self.vhost, &words.next())),
            "consumers" => out.push(show::consumers(&self.vhost, &words.next())),
            "ages" => out.push(show::ages(&mut self.vhost, &words.next())),
            "counters" => out.push(show::counters(&self.vhost)),
            "deaths" => out.extend(show::deaths(&self.vhost, self.now())),
            "channels" => out.extend(show::channels(&self.vhost)),
            "exchanges" => out.extend(show::exchanges(&self.vhost)),
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
            "set-redrive" | "clear-redrive" | "redrives" => {
                self.redrive_job(&verb, &mut words, &mut out);
            }
            "redrive" => self.redrive(&client, &mut words, &mut out),
            "alarm" => self.vhost.set_alarm(self.now(), words.next() == "on"),
            "tracing" => self.vhost.set_tracing(words.next() == "on"),
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
                let lsn = lsn.parse().map_or_else(|_| self.vhost.last_lsn(), Lsn);
                self.durable(lsn);
            }
            "transfer" => self.fail_over(true),
            "failover" => self.fail_over(false),
            "digest" => self.vhost.log_digest(self.now()),
            "stop" => self.vhost.cancel_consumers(self.now()),
            _ => self.request(&client, channel, &verb, &mut words),
        }
        assert!(words.is_empty(), "what is `{}` in `{line}`?", words.rest());
        if self.batches {
            return out;
        }
        self.settle(&mut out);
        self.check(line);
        out
    }

    /// The redrive jobs in the log.
    fn redrive_job(&mut self, verb: &str, words: &mut Words, out: &mut Vec<String>) {
        let now = self.now();
        match verb {
            "set-redrive" => {
                let (id, job) = (words.redrive(), words.next());
                self.vhost.set_redrive(now, id, job.as_bytes().into());
            }
            "clear-redrive" => {
                let id = words.redrive();
                assert!(self.vhost.clear_redrive(now, id), "there is no redrive {id}");
            }
            _ => out.extend(
                self.vhost
                    .redrives()
                    .map(|(id, job)| format!("redrive {id} {}", String::from_utf8_lossy(job))),
            ),
        }
    }

    fn check(&self, after: &str) {
        let page_store = (!self.batches).then_some(&self.page_store);
        check(&self.vhost, page_store, &self.replay, &self.disk, after);
    }

    /// Checks that replaying the log restores the same durable messages, after clients have disconnected.
    fn check_restart(&mut self) {
        self.check_replica("before the end", true);
        let now = self.now();
        let clients: Vec<ConnectionId> = self.vhost.connections().map(|(id, _)| id).collect();
        clients.into_iter().for_each(|id| self.vhost.close_connection(now, id));
        self.settle(&mut Vec::new());
        self.check("the end");
        self.vhost.log_digest(now);
        self.settle(&mut Vec::new());
        self.check_replica("at the end", false);
        let axis = match self.follower {
            Some(_) => now.time,
            None => Time::from_millis(now.wall_ms()),
        };
        // Once with everything there ever was, once with what a compaction leaves.
        for _ in 0..2 {
            let back = self.disk.restart(Now { time: axis, ..now }, &self.vhost);
            self.page_store.assert_same(&self.vhost, &back);
            self.disk.compact();
        }
    }

    fn durable(&mut self, lsn: Lsn) {
        self.durable = self.durable.max(lsn);
        self.vhost.durable(lsn);
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
        self.vhost.set_connection_name(connection, client);
        self.clients.insert(client.to_owned(), connection);
        connection
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
            self.check("the timer");
            let at = render::millis(self.now_us);
            out.extend(effects.into_iter().map(|effect| format!("{at} {effect}")));
        }
        self.now_us = until_us;
        // A stale wake-up changes nothing.
        self.vhost.tick(self.now());
    }

    /// Ends the batch: confirms are sent, effects taken, pages written and read.
    fn settle(&mut self, out: &mut Vec<String>) {
        loop {
            let tasks = self.take_effects(out);
            if tasks.is_empty() {
                return;
            }
            let now = self.now();
            for task in tasks {
                self.page_store.perform(task, &mut self.vhost, now, &mut self.disk);
            }
        }
    }

    /// Reports the batch as durable and takes all effects but tasks of pages.
    fn take_effects(&mut self, out: &mut Vec<String>) -> Vec<PageTask> {
        let mut tasks = Vec::new();
        if !self.holds_log {
            self.durable(self.vhost.last_lsn());
        }
        self.vhost.flush();
        let names: BTreeMap<ConnectionId, &str> =
            self.clients.iter().map(|(name, id)| (*id, name.as_str())).collect();
        let mut effects: Vec<Effect> =
            self.waiting.drain(..).chain(self.vhost.drain_effects()).collect();
        for effect in &mut effects {
            if let Effect::SendDurable { lsn, connection, channel, outgoing } = effect
                && *lsn <= self.durable
            {
                let (connection, channel, outgoing) = (*connection, *channel, outgoing.clone());
                *effect = Effect::Send { connection, channel, outgoing };
            }
        }
        for effect in effects {
            if let Effect::Log { record, .. } = &effect {
                self.replay.apply(record);
                self.disk.write(&effect);
                self.follower.iter_mut().for_each(|follower| follower.write(&effect));
            }
            if let Effect::Send { connection, channel, outgoing } = &effect {
                self.told.push((*connection, *channel, outgoing.clone()));
            }
            match effect {
                Effect::Log { lsn, record, .. } if self.shows.log => {
                    out.push(format!("log {lsn}: {}", render::record(&record)));
                }
                Effect::Log { .. } => {}
                Effect::Stalled(connection) => {
                    out.push(format!("{} is stalled", names[&connection]));
                }
                Effect::AskBacklog(connection) => {
                    out.push(format!("{} is asked for its backlog", names[&connection]));
                }
                Effect::Event(event) => out.push(format!("! {event:?}")),
                Effect::Page(task) => tasks.push(task),
                Effect::AwaitGet(_) | Effect::Hold(_) => {}
                Effect::SendDurable { .. } => self.waiting.push(effect),
                Effect::Send { connection, channel, outgoing } => {
                    let name = names.get(&connection).copied().unwrap_or("?");
                    let at = match (name, channel.0) {
                        ("c", 1) => String::new(),
                        ("c", 0) => "connection: ".to_owned(),
                        (name, 0) => format!("{name} connection: "),
                        (name, 1) => format!("{name}: "),
                        (name, channel) => format!("{name}.{channel}: "),
                    };
                    out.push(format!("{at}{}", render::outgoing(&outgoing, self.shows.deaths)));
                }
            }
        }
        let axis = self.now().time;
        if let Some(follower) = &mut self.follower {
            follower.end_entry(axis).unwrap();
        }
        tasks
    }
}
