//! Writes the seeds that are bytes: `cargo run --example seeds` in the folder `fuzz`.
//!
//! They are made of the dialogues of `crates/session/tests`: every scenario is a stream of frames, a
//! few methods, and a history of the session target. Seeds that are text were written by hand.
#![allow(clippy::unwrap_used, reason = "a tool for those who change the seeds")]

#[allow(dead_code, reason = "shared with the dialogues, which use all of it")]
#[path = "../../crates/session/tests/dialogue/hear.rs"]
mod hear;
#[allow(dead_code, reason = "shared with the dialogues, which use all of it")]
#[path = "../../crates/session/tests/dialogue/methods.rs"]
mod methods;
#[allow(dead_code, reason = "shared with the dialogues, which use all of it")]
#[path = "../../crates/session/tests/dialogue/peer.rs"]
mod peer;
#[allow(dead_code, reason = "shared with the dialogues, which use all of it")]
#[path = "../../crates/session/tests/dialogue/say.rs"]
mod say;
#[allow(dead_code, reason = "shared with the dialogues, which use all of it")]
#[path = "../../crates/session/tests/dialogue/words.rs"]
mod words;
#[allow(dead_code, reason = "shared with the dialogues, which use all of it")]
#[path = "../../crates/session/tests/dialogue/world.rs"]
mod world;

use std::fs;
use std::path::Path;

use amqp::content_header::ContentHeader;
use amqp::frame::{FrameType, split_frame};
use amqp::method::Method;
use amqp::protocol_header::AMQP_0_9_1;
use amqp::table::{TableBuilder, TableRef, Value};
use checks::session::steps::{Say, Setup, Step};

/// Longest stream or history that is worth a seed: large ones are about sizes, not about order.
const SEED_BYTES_MAX: usize = 4000;

fn main() {
    let mut dialogues: Vec<_> = fs::read_dir("../crates/session/tests/dialogues")
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    dialogues.sort();
    for path in dialogues {
        let file = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        for (number, scenario) in text.split("\n== ").skip(1).enumerate() {
            let played = play(scenario);
            let name = format!("{file}-{number:02}");
            // A stream of frames has no protocol header in front.
            let frames = played.stream.strip_prefix(&AMQP_0_9_1).unwrap_or(&played.stream);
            write("frames", &name, [&[2, 9], frames].concat());
            write("session", &name, played.history);
            let mut rest = frames;
            while let Ok(Some((frame, used))) = split_frame(rest, u32::MAX) {
                rest = &rest[used..];
                write_payload(frame.frame_type, frame.payload);
            }
        }
    }
    tables();
    histories();
    damages();
    links();
    clients();
    cluster_frames();
}

/// Kinds and payloads of frames.
type Payloads<'a> = &'a [(u8, Vec<u8>)];

/// Messages of a member: each kind alone, and histories of several.
fn cluster_frames() {
    let numbers = |numbers: &[u64]| -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    };
    let clock = |is_there: u8| [vec![is_there], numbers(&[2, 2, 9, 5])].concat();
    let vote =
        |term, is_pre_vote| [numbers(&[term, 3, 1, 0, 0]), vec![u8::from(is_pre_vote), 0]].concat();
    let vote_answer = |term, is_pre_vote, is_rejected| {
        let flags = vec![u8::from(is_pre_vote), u8::from(is_rejected)];
        [numbers(&[term, 0, 0]), flags, clock(0)].concat()
    };
    let entry = |index, term, kind, content: &[u8]| {
        let length = u32::try_from(content.len()).unwrap().to_le_bytes();
        let header = [numbers(&[index, term, 7, 0, 0]), vec![0; 4], length.to_vec()].concat();
        [header, vec![kind, 0, 0, 0], content.to_vec()].concat()
    };
    let append = |term, previous, previous_term, commit, entries: &[Vec<u8>]| {
        let count = u32::try_from(entries.len()).unwrap().to_le_bytes();
        let fields = [numbers(&[term, previous, previous_term, commit]), clock(1)].concat();
        let message = [fields, count.to_vec(), entries.concat()].concat();
        let total = u32::try_from(message.len()).unwrap().to_le_bytes();
        [numbers(&[1]), vec![0; 4], total.to_vec(), message].concat()
    };
    let heartbeat = |term, commit| [numbers(&[term, commit, 1]), clock(1)].concat();
    let empty = |index, term| entry(index, term, 1, &[]);
    let learner = [vec![1, 1], numbers(&[0x3_0001])].concat();
    let first = append(2, 0, 0, 0, &[empty(1, 2), entry(2, 2, 2, &learner)]);
    let whole = |kind, payload: &[u8]| {
        let [from, to] = [2, 1].map(|node| replication::NodeId::new(node).unwrap().member(1));
        let (cluster, group) = (replication::ClusterId(7), replication::GroupId(5));
        replication::check_frame(cluster, group, (from, to), kind, payload)
    };
    let histories: &[(&str, u8, Payloads<'_>)] = &[
        ("follower-appends", 0, &[(1, first.clone()), (3, heartbeat(2, 2))]),
        (
            "follower-replaces",
            0,
            &[(1, first.clone()), (1, append(4, 1, 2, 1, &[empty(2, 4)])), (3, heartbeat(4, 2))],
        ),
        (
            "contradicts-a-committed-entry",
            0,
            &[(1, append(2, 0, 0, 1, &[empty(1, 2)])), (1, append(3, 0, 0, 1, &[empty(1, 3)]))],
        ),
        ("lacks-entries", 0, &[(3, heartbeat(2, 9))]),
        ("damaged-records", 0, &[(1, append(2, 0, 0, 0, &[entry(1, 2, 0, b"records")]))]),
        ("votes", 0, &[(5, vote(1, true)), (5, vote(1, false))]),
        (
            "is-elected",
            48,
            &[
                (6, vote_answer(1, true, false)),
                (6, vote_answer(1, false, false)),
                (2, [numbers(&[1, 1, 0, 0, 0]), vec![0]].concat()),
                (4, numbers(&[1, 1])),
                (2, [numbers(&[1, 900, 0, 0, 0]), vec![0]].concat()),
            ],
        ),
        ("leads-alone", 49, &[(5, vote(9, false)), (4, numbers(&[1, 1]))]),
        ("transfer", 0, &[(1, first), (7, numbers(&[2])), (8, numbers(&[2, 5, 2]))]),
    ];
    for (name, choice, messages) in histories {
        let mut input = vec![*choice];
        for (kind, payload) in *messages {
            let length = u16::try_from(payload.len() + 1).unwrap() | 1 << 15;
            input.extend(length.to_le_bytes());
            input.push(*kind);
            input.extend_from_slice(payload);
        }
        write("cluster_frame", name, input);
    }
    let frame = whole(4, &numbers(&[1, 1]));
    let length = u16::try_from(frame.len()).unwrap().to_le_bytes();
    write("cluster_frame", "whole-frame", [&[0], length.as_slice(), &frame].concat());
}

/// A scenario as one stream, and as a history of the session target.
struct Played {
    stream: Vec<u8>,
    history: Vec<u8>,
}

fn play(scenario: &str) -> Played {
    let mut played = Played { stream: Vec::new(), history: Vec::new() };
    Setup { bits: 0, pieces: 0 }.write(&mut played.history);
    let mut frame_max = 131_072;
    for line in scenario.lines().skip(1).filter(|line| !world::is_result(line)) {
        if let Some(line) = line.strip_prefix(['>', '+']) {
            client(&say::bytes(line, frame_max), &mut played);
            continue;
        }
        let mut words = words::Words::new(line);
        if words.is_empty() || line.starts_with('#') {
            continue;
        }
        let verb = words.name();
        match verb {
            "start" | "log-in" | "connect" => {
                words.skip_blanks();
                for line in world::handshake(verb, &mut words, &mut frame_max) {
                    client(&say::bytes(&line, frame_max), &mut played);
                }
            }
            "at" => Step::Sleep { time: 1000 }.write(&mut played.history),
            "force-close" => Step::Operate { action: 2, choice: 0 }.write(&mut played.history),
            _ => {}
        }
    }
    played
}

/// The client sends bytes: frames as such, so that a fuzzer can make them longer.
fn client(bytes: &[u8], played: &mut Played) {
    played.stream.extend_from_slice(bytes);
    let mut rest = bytes;
    while let Ok(Some((frame, used))) = split_frame(rest, u32::MAX) {
        let (frame_type, channel) = (frame.frame_type.octet(), frame.channel);
        let Ok(channel) = u8::try_from(channel) else { break };
        let step = Step::Frame { peer: 0, frame_type, channel, payload: frame.payload.to_vec() };
        step.write(&mut played.history);
        rest = &rest[used..];
    }
    if !rest.is_empty() {
        Step::Bytes { peer: 0, bytes: rest.to_vec() }.write(&mut played.history);
    }
}

fn write_payload(frame_type: FrameType, payload: &[u8]) {
    match (frame_type, Method::decode(payload)) {
        // The longest of each, which has most in it.
        (FrameType::Method, Ok(method)) => {
            let name = method.name().replace('.', "-");
            let known =
                fs::metadata(format!("corpus/methods/{name}")).map_or(0, |known| known.len());
            if payload.len() as u64 > known && payload.len() < 300 {
                write("methods", &name, payload.to_vec());
            }
        }
        (FrameType::Header, _) => {
            if let Ok(header) = ContentHeader::parse(payload) {
                write(
                    "tables",
                    &format!("properties-{}", header.properties.len()),
                    header.properties.to_vec(),
                );
            }
        }
        _ => {}
    }
}

fn tables() {
    let mut all = TableBuilder::new();
    let scalars = [
        Value::Bool(true),
        Value::I8(-1),
        Value::U8(2),
        Value::I16(-3),
        Value::U16(4),
        Value::I32(-5),
        Value::U32(6),
        Value::I64(-7),
        Value::F32(0.5),
        Value::F64(-0.5),
        Value::LongStr(b"text"),
        Value::Binary(b"\0\xff"),
        Value::Timestamp(9),
        Value::Void,
    ];
    for (number, value) in scalars.into_iter().enumerate() {
        all.insert(format!("key-{number}"), value);
    }
    all.table("table", |inner| {
        inner.insert("b", Value::Void).insert("a", Value::Void);
    });
    all.array("array", |list| {
        list.push(Value::I32(1)).table(|_| {}).array(|_| {});
    });
    let all = all.finish();
    write("tables", "every-type", all.as_ref().as_bytes().to_vec());
    write("tables", "as-headers", {
        let mut bytes = vec![0x20, 0];
        all.as_ref().write(&mut bytes);
        bytes
    });
    let mut deep = Vec::new();
    for _ in 0..33 {
        let mut builder = TableBuilder::new();
        builder.insert("k", Value::Table(TableRef::from_bytes(&deep).unwrap_or_default()));
        deep = builder.finish().as_ref().as_bytes().to_vec();
    }
    write("tables", "deep", deep);
    write("tables", "doubles", b"\x01zL\0\0\0\0\0\0\0\x01\x01aV\x01at\x02".to_vec());
}

/// Histories in which clients meet each other: one for each thing that a broker has to do.
fn histories() {
    let say = |verb, who, a, b, c| Step::Say(Say { verb, who, a, b, c });
    let sleep = |time| Step::Sleep { time };
    let (expiring, limited, dead, quorum, prioritised) = (0x31, 0x02, 0x24, 0x08, 0x10);
    let histories: &[(&str, u8, Vec<Step>)] = &[
        (
            "publish-and-consume",
            0,
            vec![
                say(2, 0, 0, 0, 0),
                say(13, 1, 0, 0, 1),
                say(30, 0, 0, 3, 1),
                say(30, 2, 0, 3, 1),
                say(17, 1, 1, 0, 0),
                say(19, 1, 2, 2, 0),
            ],
        ),
        (
            "expire-and-die",
            0,
            vec![
                say(2, 0, 1, 0, 0),
                say(2, 0, 0, 0, expiring | dead),
                say(30, 0, 0, 1, 1),
                say(30, 0, 0, 2, 3),
                sleep(40),
                say(16, 1, 1, 0, 0),
                say(18, 1, 1, 0, 0),
            ],
        ),
        (
            "length-limit",
            0,
            vec![
                say(2, 0, 1, 0, 0),
                say(2, 0, 0, 0, limited | dead),
                say(21, 0, 1, 0, 0),
                say(30, 0, 0, 1, 1),
                say(30, 0, 0, 2, 1),
                say(30, 0, 0, 3, 1),
                Step::Restart,
            ],
        ),
        (
            "quorum-returns",
            0,
            vec![
                say(2, 0, 0, 0, quorum | 0x84),
                say(2, 0, 0, 0, quorum),
                say(30, 0, 0, 1, 1),
                say(13, 1, 0, 0, 0),
                say(19, 1, 1, 2, 0),
                say(19, 1, 2, 2, 0),
                Step::Cut { peer: 1 },
            ],
        ),
        (
            "priorities-on-pages",
            1,
            vec![
                say(2, 0, 0, 0, prioritised),
                say(30, 0, 0, 1, 0x19),
                say(30, 0, 0, 1, 0x29),
                say(30, 0, 0, 1, 0x39),
                say(12, 1, 1, 0, 0),
                say(13, 1, 0, 0, 0),
                Step::Restart,
            ],
        ),
        (
            "transactions",
            0,
            vec![
                say(2, 0, 0, 0, 0),
                say(22, 0, 0, 0, 0),
                say(30, 0, 0, 1, 1),
                say(24, 0, 0, 0, 0),
                say(30, 0, 0, 2, 1),
                say(23, 0, 0, 0, 0),
                say(16, 0, 0, 0, 0),
                say(17, 0, 1, 0, 0),
                say(23, 0, 0, 0, 0),
            ],
        ),
        (
            "routes",
            0,
            vec![
                say(2, 0, 0, 0, 0),
                say(8, 0, 1, 2, 4),
                say(4, 0, 0, 1, 6),
                say(4, 0, 0, 5, 7),
                say(10, 0, 1, 5, 7),
                say(29, 1, 5, 1, 0),
                say(29, 1, 5, 5, 0x60),
                say(9, 0, 1, 0, 0),
            ],
        ),
        (
            "direct-reply",
            0,
            vec![
                say(13, 0, 5, 2, 0),
                say(30, 0, 0, 1, 0x10),
                say(2, 1, 0, 0, 0),
                say(30, 0, 0, 1, 0x10),
                say(13, 1, 0, 2, 0),
            ],
        ),
        (
            "policies",
            0,
            vec![
                say(2, 0, 0, 0, 0),
                say(30, 0, 0, 1, 1),
                Step::Policy { key: 0, choice: 0x10 },
                sleep(10),
                Step::Policy { key: 1, choice: 0x41 },
                say(30, 0, 0, 1, 1),
                say(30, 0, 0, 1, 1),
                Step::Policy { key: 0x80, choice: 0 },
                Step::Restart,
            ],
        ),
        (
            "slow-client",
            0,
            vec![
                say(2, 0, 0, 0, 0),
                Step::Listen { peer: 1, listens: false },
                say(13, 1, 0, 2, 0),
                say(31, 0, 0, 250, 0),
                say(31, 0, 0, 250, 0),
                Step::Listen { peer: 1, listens: true },
            ],
        ),
        (
            "slow-disk",
            0,
            vec![
                say(2, 0, 0, 0, 0),
                say(21, 0, 0, 0, 0),
                Step::Disk { is_slow: true },
                say(30, 0, 0, 1, 1),
                say(2, 0, 1, 0, 0),
                say(30, 0, 0, 1, 1),
                say(13, 1, 0, 0, 0),
                Step::Disk { is_slow: false },
            ],
        ),
        (
            "operator",
            0,
            vec![
                say(2, 0, 0, 0, 0),
                say(13, 1, 0, 0, 0),
                Step::Operate { action: 0, choice: 1 },
                say(30, 0, 0, 1, 1),
                Step::Operate { action: 1, choice: 0 },
                Step::Operate { action: 3, choice: 0 },
                say(30, 0, 0, 1, 1),
                Step::Operate { action: 5, choice: 0 },
                Step::Operate { action: 2, choice: 1 },
            ],
        ),
        (
            "somebody-who-may-little",
            0,
            vec![say(2, 2, 3, 0, 0), say(30, 2, 3, 1, 1), say(13, 2, 3, 2, 0), say(2, 2, 0, 0, 0)],
        ),
    ];
    for (name, bits, steps) in histories {
        for (suffix, pieces) in [("", 0), ("-in-pieces", 7), ("-replicated", 0x80)] {
            let mut bytes = Vec::new();
            Setup { bits: *bits, pieces }.write(&mut bytes);
            steps.iter().for_each(|step| step.write(&mut bytes));
            write("session", &format!("{name}{suffix}"), bytes);
        }
    }
}

/// Changes to a log: which log, whether checksums are corrected, kind, file, offset, how.
fn damages() {
    for log in 0..4 {
        for mends in 0..2 {
            let name =
                |what: &str| format!("log-{log}-{what}{}", ["", "-mended"][usize::from(mends)]);
            write("log_recovery", &name("flip"), vec![log, mends, 0, 0, 0x34, 0x10, 1]);
            write("log_recovery", &name("zeros"), vec![log, mends, 1, 0, 0, 0x10, 0, 100, 0]);
            write("log_recovery", &name("cut"), vec![log, mends, 2, 0, 0x80, 0x10]);
            write("log_recovery", &name("manifest"), vec![log, mends, 0, 4, 20, 0, 0xff]);
            write("log_recovery", &name("lost"), vec![log, mends, 6, 1, 0, 0]);
            write("log_recovery", &name("copied"), vec![log, mends, 7, 0, 0, 0, 1]);
            let batch = [&[log, mends, 5, 0, 8, 0x10, 8][..], &[0xff; 8]].concat();
            write("log_recovery", &name("lengths"), batch);
        }
    }
}

/// The frames with which a node hands over a client.
fn clients() {
    let octets = |content: &[u8]| {
        let length = u32::try_from(content.len()).unwrap();
        [&length.to_le_bytes()[..], content].concat()
    };
    let address = [&[0; 10][..], &[0xff, 0xff, 10, 1, 2, 3, 0x34, 0x12]].concat();
    let properties = b"\x07productS\0\0\0\x04pika";
    let plain = [
        octets(b"guest"),
        octets(b"/"),
        address.repeat(2),
        octets(b"PLAIN"),
        vec![0, 0, 2, 0, 0xff, 7, 60, 0],
        octets(properties),
    ]
    .concat();
    let words = [&b"tlsv1.3"[..], b"any", b"aes_256_gcm", b"aead"].map(octets).concat();
    let names = [&b"CN=anna"[..], b"CN=authority", b"2026"].map(octets).concat();
    for (name, choice, content) in [
        ("plain", 0, [&plain[..], &[0]].concat()),
        ("tls", 0, [&plain[..], &[1], &words, &[0]].concat()),
        ("certificate", 0, [&plain[..], &[1], &words, &[1], &names].concat()),
        ("length", 0, vec![0xff; 4]),
        ("adopted", 1, vec![1]),
        ("not-leading", 1, [&[2][..], &octets(b"b@h")].concat()),
        ("stopping", 1, vec![4]),
    ] {
        write("cluster_adopt", name, [&[choice][..], &content].concat());
    }
}

/// The messages of a node on a link: those of a handshake, chunks, frames of the link itself.
fn links() {
    let hello = |oldest: u16| {
        let mut hello = b"LVRTLINK".to_vec();
        hello.extend_from_slice(&oldest.to_le_bytes());
        hello.extend_from_slice(&oldest.to_le_bytes());
        hello.extend_from_slice(&[0, 1]);
        hello.extend_from_slice(&[7; 24 + 6 + 32]);
        hello.extend_from_slice(b"\x03a@h\x050.1.0");
        hello
    };
    let message = |kind: u8, content: &[u8]| {
        let length = u16::try_from(content.len()).unwrap();
        [&[kind][..], &length.to_le_bytes(), content].concat()
    };
    let chunk = |channel: u8, flags: u8, content: &[u8]| {
        let length = u32::try_from(content.len()).unwrap();
        let header = [&length.to_le_bytes()[..], &[channel, flags, 0, 0]].concat();
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&header), content);
        [&header[..], &checksum.to_le_bytes(), content].concat()
    };
    let mut introduction = vec![2, 1, 1, 0, 0, 0];
    introduction.extend_from_slice(&[5; 16]);
    introduction.extend_from_slice(&[1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, b'/']);
    let mut facts = b"\x03\x054.3.6\x050.1.0".to_vec();
    facts.extend_from_slice(&[1; 24 + 27 + 8 + 18 + 2]);
    let ping = [&[1][..], &[9; 16], &[1], &[8; 16]].concat();
    let handshake = [message(1, &hello(1)), message(2, &[3; 32]), message(3, &[5])].concat();
    let chunks = [
        chunk(0, 1, &ping),
        chunk(2, 0, b"begin "),
        chunk(1, 1, b"ordered"),
        chunk(2, 1, b"end"),
        chunk(0, 1, &introduction),
    ];
    let node = [&b"\x03a@h\x01h\x09\x00"[..], &[7; 8], &[1, 0, 0]].concat();
    let admitted = [&[3][..], &[7; 8], &[8; 8], &[1, 0, 0, 0], &node].concat();
    for (name, reader, content) in [
        ("handshake", 0, handshake),
        ("hello-of-a-later-version", 0, message(1, &hello(9))),
        ("hello-that-is-too-long", 0, vec![1, 0xff, 0xff]),
        ("chunks", 1, chunks.concat()),
        ("chunk-that-is-too-long", 1, vec![0xff; 12]),
        ("ping", 2, ping),
        ("introduction", 2, introduction),
        ("facts", 2, facts),
        ("refusal", 2, vec![4, 5]),
        ("goodbye", 2, vec![5]),
        ("question-about-joining", 3, b"\x01h\x09\x00\x01\x01\x00x".to_vec()),
        ("answer-about-joining", 3, admitted),
    ] {
        write("cluster_hello", name, [&[reader + 4 * 6][..], &content].concat());
    }
}

fn write(target: &str, name: &str, bytes: Vec<u8>) {
    if bytes.is_empty() || bytes.len() > SEED_BYTES_MAX {
        return;
    }
    let folder = Path::new("corpus").join(target);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(name), bytes).unwrap();
}
