//! Dialogues: their lines are played to a peer, and what comes back is written below them.
//!
//! ```text
//! == what is proved                  a fresh session and a fresh vhost
//! > LINE                             the client sends; notation in `say`
//! + LINE                             the same, but together with the next `>`
//! < LINE                             the server sends, or `(socket closed)`
//! ? LINE                             the session asks the server, or reports to it
//! connect channels=1-3 heartbeat=10  the handshake and open channels, without their lines
//! start, log-in                      the beginning of it: up to connection.start, up to tune
//! offer frame-max=8192               other options of the node, for what follows in the scenario
//! at 2500ms                          time passes; what happens by itself has its time behind it
//! hold, answer                       the server waits with its answers to the session, and gives them
//! listens yes|no                     whether the server reads from the client
//! block-publishes yes|no             an alarm begins, or ends; without connection.blocked
//! alarm REASON, all-clear            connection.blocked and connection.unblocked
//! force-close REASON                 an operator closes the connection
//! node-deletes QUEUE                 the queue goes without the client's doing
//! client, timeout                    show what the session knows, below with `=`
//! ```

use std::fmt::Write as _;

use broker::refusal::Refusal;
use broker::{Command, DeleteQueue};
use session::SessionOptions;

use crate::hear::Ear;
use crate::peer::{BATCH, Heard, Peer};
use crate::say;
use crate::words::{Words, shown};

/// Chunks in which the client's bytes reach the session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Feeding {
    /// One read for each line with `>`.
    Lines,
    /// One read for each byte, or, of many, for so few that there are about a thousand reads.
    Bytes,
    /// One read for all lines that nothing else stands between.
    Together,
}

/// Reads that one line is cut into at most.
const READS_MAX: usize = 1000;

/// So many lines in a row may be the same before they are counted.
const FOLDED_MIN: usize = 3;

/// A file of dialogues as it was played.
pub(crate) struct Played {
    /// The file as it should be.
    pub(crate) text: String,
    /// Output of the server, by scenario.
    pub(crate) said: Vec<(String, Vec<u8>)>,
}

/// Plays every scenario of a file.
pub(crate) fn play(text: &str, feeding: Feeding) -> Played {
    let mut out = String::new();
    let mut said = Vec::new();
    let mut world: Option<World> = None;
    for line in text.lines() {
        if is_result(line) {
            continue;
        }
        if let Some(title) = line.strip_prefix("== ") {
            if let Some(world) = world.take() {
                said.push(world.end());
            }
            world = Some(World::new(title, feeding));
            writeln!(out, "{line}").unwrap();
            continue;
        }
        writeln!(out, "{line}").unwrap();
        if let Some(world) = &mut world
            && !line.is_empty()
            && !line.starts_with('#')
        {
            world.run(line).iter().for_each(|result| writeln!(out, "{result}").unwrap());
        }
    }
    said.extend(world.map(World::end));
    Played { text: out, said }
}

/// True if a line is an expectation, not an action.
pub(crate) fn is_result(line: &str) -> bool {
    ["< ", "? ", "= "].iter().any(|mark| line.starts_with(mark))
}

/// The first line of each scenario in which two plays of a file differ, with its neighbours.
pub(crate) fn difference(expected: &str, actual: &str) -> String {
    let mut out = String::new();
    let scenarios = |text: &str| text.split("\n== ").map(str::to_owned).collect::<Vec<_>>();
    for (wanted, got) in scenarios(expected).into_iter().zip(scenarios(actual)) {
        if wanted == got {
            continue;
        }
        let mut pairs = wanted.lines().zip(got.lines());
        let at = pairs.position(|(one, other)| one != other);
        let at = at.unwrap_or_else(|| wanted.lines().count().min(got.lines().count()));
        writeln!(out, "{}", wanted.lines().next().unwrap()).unwrap();
        let around = at.saturating_sub(2);
        wanted.lines().skip(around).take(5).for_each(|line| writeln!(out, "  -{line}").unwrap());
        got.lines().skip(around).take(5).for_each(|line| writeln!(out, "  +{line}").unwrap());
    }
    out
}

struct World {
    title: String,
    feeding: Feeding,
    options: SessionOptions,
    peer: Peer,
    ear: Ear,
    /// Bytes that wait to be sent with the next line.
    together: Vec<u8>,
    said: Vec<u8>,
    frame_max: usize,
}

impl World {
    fn new(title: &str, feeding: Feeding) -> Self {
        let server_properties = session::server_properties(session::ServerIdentity {
            product: "Product",
            version: "1.2.3",
            leveret_version: "0.0.1",
            cluster_name: "dialogue",
        });
        let options = SessionOptions { server_properties, ..SessionOptions::default() };
        Self {
            title: title.to_owned(),
            feeding,
            peer: Peer::new(&options, batch(feeding)),
            options,
            ear: Ear::default(),
            together: Vec::new(),
            said: Vec::new(),
            frame_max: 131_072,
        }
    }

    fn end(mut self) -> (String, Vec<u8>) {
        self.flush();
        self.results("");
        assert!(self.ear.is_idle(), "`{}` ends within a frame or a content", self.title);
        (self.title, self.said)
    }

    /// Runs one line and returns what came of it.
    fn run(&mut self, line: &str) -> Vec<String> {
        if let Some(line) = line.strip_prefix('+') {
            self.together.extend(say::bytes(line, self.frame_max));
            return Vec::new();
        }
        if let Some(line) = line.strip_prefix('>') {
            self.together.extend(say::bytes(line, self.frame_max));
            if self.feeding != Feeding::Together {
                self.flush();
            }
            return self.results("");
        }
        self.flush();
        let mut out = self.results("");
        let mut words = Words::new(line);
        let verb = words.name();
        words.skip_blanks();
        match verb {
            "start" | "log-in" | "connect" => {
                let lines = handshake(verb, &mut words, &mut self.frame_max);
                lines.iter().for_each(|line| self.send(&say::bytes(line, self.frame_max)));
                let is_end = |line: &String| {
                    line.starts_with("< connection.close") || line.starts_with("< (socket")
                };
                out.extend(self.results("").into_iter().filter(is_end));
            }
            "offer" => self.offer(&mut words),
            "at" => self.sleep_until(&mut words, &mut out),
            "hold" => self.peer.holds_answers = true,
            "answer" => {
                self.peer.holds_answers = false;
                self.peer.answer_held();
            }
            "listens" => self.peer.listens = words.name() == "yes",
            "block-publishes" => self.peer.block_publishes(words.name() == "yes"),
            "alarm" => {
                let reason = String::from_utf8(words.string()).unwrap();
                self.peer.say_of_node(|session, out| session.blocked(&reason, out));
            }
            "all-clear" => self.peer.say_of_node(|session, out| session.unblocked(out)),
            "force-close" => {
                let text = String::from_utf8(words.string()).unwrap();
                let code = amqp::reply_code::ReplyCode::ConnectionForced;
                let refusal = Refusal::new(code, text);
                self.peer.happens(|vhost, now, id| vhost.force_close(now, id, refusal));
            }
            "node-deletes" => {
                let queue = String::from_utf8(words.string()).unwrap();
                let delete =
                    DeleteQueue { queue: &queue, if_unused: false, if_empty: false, nowait: false };
                self.peer.execute(Command::DeleteQueue(delete));
            }
            "client" => out.push(self.client()),
            "timeout" => out.push(self.timeout()),
            _ => words.fail("an unknown verb"),
        }
        if !words.is_empty() {
            words.fail("something is left over");
        }
        out.extend(self.results(""));
        out
    }

    /// Sends what waits.
    fn flush(&mut self) {
        let bytes = std::mem::take(&mut self.together);
        self.send(&bytes);
    }

    fn send(&mut self, bytes: &[u8]) {
        let piece = match self.feeding {
            Feeding::Bytes => bytes.len().div_ceil(READS_MAX).max(1),
            Feeding::Lines | Feeding::Together => bytes.len().max(1),
        };
        bytes.chunks(piece).for_each(|piece| self.peer.receive(piece));
    }

    /// The output as lines, each with `at` behind it.
    fn results(&mut self, at: &str) -> Vec<String> {
        let mut out = Vec::new();
        for heard in self.peer.take_heard() {
            match heard {
                Heard::Bytes(bytes) => {
                    let frame_max = usize::try_from(self.peer.session.frame_max()).unwrap();
                    let lines = self.ear.hear(&bytes, frame_max);
                    let lines = lines.iter().map(|line| masked(line));
                    out.extend(lines.map(|line| format!("< {line}{at}")));
                    self.said.extend(bytes);
                }
                Heard::Question(question) => out.push(format!("? {question}{at}")),
                Heard::Closed => out.push(format!("< (socket closed){at}")),
            }
        }
        folded(&out)
    }

    fn offer(&mut self, words: &mut Words<'_>) {
        while !words.is_empty() {
            let name = words.name();
            words.expect("=");
            match name {
                "frame-max" => self.options.frame_max = words.number(),
                "channel-max" => self.options.channel_max = words.number(),
                "heartbeat" => self.options.heartbeat_s = words.number(),
                "max-message-size" => self.options.message_bytes_max = words.number(),
                "handshake-timeout" => self.options.handshake_timeout_ms = words.number(),
                "mechanism" => {
                    let wanted = words.name();
                    let known = session::MECHANISMS.iter().find(|known| **known == wanted);
                    self.options.mechanisms.push(known.unwrap());
                }
                _ => words.fail("an unknown option"),
            }
        }
        self.peer = Peer::new(&self.options, batch(self.feeding));
    }

    fn sleep_until(&mut self, words: &mut Words<'_>, out: &mut Vec<String>) {
        let text = words.name();
        let (number, factor) = match text.strip_suffix("ms") {
            Some(number) => (number, 1_000),
            None => (text.strip_suffix('s').expect("ms or s"), 1_000_000),
        };
        let until_us = number.parse::<u64>().unwrap() * factor;
        loop {
            let goes_on = self.peer.pass(until_us);
            let passed_us = self.peer.now().time.as_micros() % 1_000_000_000_000;
            out.extend(self.results(&format!("  at {}ms", passed_us / 1000)));
            if !goes_on {
                return;
            }
        }
    }

    fn client(&self) -> String {
        let client = self.peer.session.client();
        let mut out = "=".to_owned();
        for (name, has) in [
            ("consumer_cancel_notify", client.capabilities.consumer_cancel_notify),
            ("connection.blocked", client.capabilities.connection_blocked),
            ("authentication_failure_close", client.capabilities.authentication_failure_close),
        ] {
            out.push_str(if has { " +" } else { " -" });
            out.push_str(name);
        }
        if let Some(name) = &client.connection_name {
            write!(out, " name={}", shown(name.as_bytes())).unwrap();
        }
        write!(out, " {:?}", client.properties).unwrap();
        out
    }

    fn timeout(&self) -> String {
        let now = self.peer.now().time;
        match self.peer.session.next_timeout() {
            Some(next) => format!("= in {}ms", next.micros_since(now) / 1000),
            None => "= never".to_owned(),
        }
    }
}

fn batch(feeding: Feeding) -> usize {
    match feeding {
        Feeding::Lines | Feeding::Bytes => 1,
        Feeding::Together => BATCH,
    }
}

/// The line without what is random in names that the broker chooses.
pub(crate) fn masked(line: &str) -> String {
    let mut out = line.to_owned();
    for prefix in ["amq.gen-", "amq.ctag-"] {
        if let Some(at) = out.find(prefix) {
            let given = at + prefix.len()..out.len();
            let random = out[given.clone()].split(' ').next().unwrap().len();
            assert_eq!(random, 22, "the length of a chosen name");
            out.replace_range(given.start..given.start + random, "(22)");
        }
    }
    out
}

/// The lines, with runs of equal ones replaced by their number.
pub(crate) fn folded(lines: &[String]) -> Vec<String> {
    let runs = lines.chunk_by(|one, next| one == next);
    let fold = |run: &[String]| match run.len() {
        few if few <= FOLDED_MIN => run.to_vec(),
        many => vec![format!("{}  {many} times", run[0])],
    };
    runs.flat_map(fold).collect()
}

/// The lines of a client that starts, logs in or connects; `frame_max` becomes what it agrees to.
pub(crate) fn handshake(verb: &str, words: &mut Words<'_>, frame_max: &mut usize) -> Vec<String> {
    let (mut channel_max, mut heartbeat, mut channels) = (2047_u16, 0_u16, 1..=1_u16);
    let (mut user, mut properties) = ("guest", String::new());
    while !words.is_empty() {
        let name = words.name();
        words.expect("=");
        match name {
            "frame-max" => *frame_max = words.number(),
            "channel-max" => channel_max = words.number(),
            "heartbeat" => heartbeat = words.number(),
            "user" => user = words.name(),
            "capabilities" => {
                let names: Vec<String> = words.name().split('_').map(capability).collect();
                properties =
                    format!(" client-properties={{capabilities=F:{{{}}}}}", names.concat());
            }
            "channels" => {
                let text = words.name();
                let (first, last) = text.split_once('-').unwrap_or((text, text));
                channels = first.parse().unwrap()..=last.parse().unwrap();
            }
            _ => words.fail("an unknown part of a handshake"),
        }
    }
    let mut lines = vec![
        "protocol-header".to_owned(),
        format!(
            "connection.start-ok{properties} mechanism=PLAIN \
             response=\"\\x00{user}\\x00{user}\" locale=en_US"
        ),
        format!(
            "connection.tune-ok channel-max={channel_max} frame-max={frame_max} \
             heartbeat={heartbeat}"
        ),
        "connection.open virtual-host=/".to_owned(),
    ];
    lines.extend(channels.filter(|channel| *channel > 0).map(|at| format!("{at} channel.open")));
    match verb {
        "start" => lines.truncate(1),
        "log-in" => lines.truncate(2),
        _ => {}
    }
    lines
}

fn capability(short: &str) -> String {
    let name = match short {
        "cancel" => "consumer_cancel_notify",
        "blocked" => "connection.blocked",
        "failure" => "authentication_failure_close",
        other => panic!("no capability {other}"),
    };
    format!("{name}=t:1 ")
}
