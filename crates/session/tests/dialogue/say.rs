//! Input of the client: a line of a dialogue as one or more frames.
//!
//! Decides the notation of frames. Encodes them by itself, because a client that tests a server must
//! be able to get every byte wrong.
//!
//! ```text
//! queue.declare queue=q durable arguments={x-expires=I:60000}     a method; bits stand by their name
//! 2 queue.purge queue=q                                           on channel 2
//! method class-id=60 method-id=99 arguments=hex:00                a method that may be none
//! header size=5 content-type=text/plain                           also class-id= weight= properties=hex:
//! body "hello"
//! publish exchange=x routing-key=k body="hello" priority=3        method, header and bodies at once
//! heartbeat, protocol-header
//! frame type=9 channel=1 payload=hex:00 size=2 end=0              any frame
//! bytes "GET / HTTP/1.1"                                          any bytes
//! 30 x body ""                                                    the same thirty times
//! ```

use crate::methods::{self, PROPERTIES};
use crate::words::{Words, put_long, put_short};

/// Bytes of a frame that are not payload.
pub(crate) const FRAME_OVERHEAD: usize = 8;

/// The bytes of the line; bodies of `publish` are cut to frames of `frame_max` bytes.
pub(crate) fn bytes(line: &str, frame_max: usize) -> Vec<u8> {
    let (channel, rest) = numbered(line);
    let (count, rest) = counted(rest);
    let mut words = Words::new(rest);
    let verb = words.name();
    let channel = channel.unwrap_or_else(|| methods::usual_channel(verb));
    let out = match verb {
        "bytes" => {
            words.skip_blanks();
            words.string()
        }
        "protocol-header" => b"AMQP\x00\x00\x09\x01".to_vec(),
        "heartbeat" => frame(8, channel, &[]),
        "frame" => any_frame(&mut words),
        "method" => any_method(channel, &mut words),
        "header" => frame(2, channel, &header(&mut words)),
        "body" => {
            words.skip_blanks();
            frame(3, channel, &words.string())
        }
        "publish" => publish(channel, &mut words, frame_max),
        name => frame(1, channel, &method(name, &mut words)),
    };
    if !words.is_empty() {
        words.fail("something is left over");
    }
    out.repeat(count)
}

/// The channel number in front of a line, if there is one: a number that no `x` follows.
fn numbered(line: &str) -> (Option<u16>, &str) {
    match line.trim().split_once(' ') {
        Some((number, rest)) if !rest.starts_with("x ") && number.parse::<u16>().is_ok() => {
            (number.parse().ok(), rest)
        }
        _ => (None, line),
    }
}

/// Number of repetitions of a frame, if the line gives one.
fn counted(line: &str) -> (usize, &str) {
    match line.trim().split_once(" x ") {
        Some((count, rest)) if count.parse::<usize>().is_ok() => (count.parse().unwrap(), rest),
        _ => (1, line),
    }
}

/// A whole frame.
pub(crate) fn frame(frame_type: u8, channel: u16, payload: &[u8]) -> Vec<u8> {
    let size = u32::try_from(payload.len()).unwrap();
    frame_of(frame_type, channel, payload, size, 0xCE)
}

fn frame_of(frame_type: u8, channel: u16, payload: &[u8], size: u32, end: u8) -> Vec<u8> {
    let mut out = vec![frame_type];
    out.extend(channel.to_be_bytes());
    out.extend(size.to_be_bytes());
    out.extend_from_slice(payload);
    out.push(end);
    out
}

fn any_frame(words: &mut Words<'_>) -> Vec<u8> {
    let (mut frame_type, mut channel, mut payload, mut size, mut end) =
        (1, 1, Vec::new(), None, 0xCE);
    while !words.is_empty() {
        let name = words.name();
        words.expect("=");
        match name {
            "type" => frame_type = words.number(),
            "channel" => channel = words.number(),
            "payload" => payload = words.string(),
            "size" => size = Some(words.number()),
            "end" => end = words.number(),
            _ => words.fail("an unknown part of a frame"),
        }
    }
    let size = size.unwrap_or_else(|| u32::try_from(payload.len()).unwrap());
    frame_of(frame_type, channel, &payload, size, end)
}

fn any_method(channel: u16, words: &mut Words<'_>) -> Vec<u8> {
    let mut payload = vec![0; 4];
    while !words.is_empty() {
        let name = words.name();
        words.expect("=");
        match name {
            "class-id" => payload[..2].copy_from_slice(&words.number::<u16>().to_be_bytes()),
            "method-id" => payload[2..4].copy_from_slice(&words.number::<u16>().to_be_bytes()),
            "arguments" => payload.extend(words.string()),
            _ => words.fail("an unknown part of a method"),
        }
    }
    frame(1, channel, &payload)
}

/// A method's payload: fields that the line does not give are zero, empty or false.
fn method(name: &str, words: &mut Words<'_>) -> Vec<u8> {
    let Some(method) = methods::by_name(name) else { words.fail("an unknown method") };
    let fields: Vec<(&str, char)> = methods::fields(method).collect();
    let mut given = given(&fields, words);
    assemble(method, &fields, &mut given)
}

/// The fields that a line gives, as bytes.
fn given<'a>(fields: &[(&'a str, char)], words: &mut Words<'_>) -> Vec<(&'a str, Vec<u8>)> {
    let mut given = Vec::new();
    while !words.is_empty() {
        let name = words.name();
        let Some((field, kind)) = fields.iter().find(|(field, _)| *field == name) else {
            words.fail(&format!("no field `{name}`"))
        };
        given.push((*field, value(*kind, words)));
    }
    given
}

fn assemble(
    method: &methods::Method,
    fields: &[(&str, char)],
    given: &mut [(&str, Vec<u8>)],
) -> Vec<u8> {
    let mut out = [method.1.to_be_bytes(), method.2.to_be_bytes()].concat();
    let mut bits = None;
    for (field, kind) in fields {
        let found = given.iter_mut().find(|(name, _)| name == field);
        let found = found.map(|(_, bytes)| std::mem::take(bytes));
        if *kind == 'b' {
            let (byte, place) = bits.unwrap_or((0_u8, 0));
            bits = Some((byte | u8::from(found.is_some()) << place, place + 1));
            continue;
        }
        out.extend(bits.take().map(|(byte, _)| byte));
        out.extend(found.unwrap_or_else(|| vec![0; empty_size(*kind)]));
    }
    out.extend(bits.map(|(byte, _)| byte));
    out
}

/// Length in zeros of the empty value of this kind.
fn empty_size(kind: char) -> usize {
    match kind {
        'o' | 's' => 1,
        'h' => 2,
        'l' | 'S' | 'F' => 4,
        'L' => 8,
        other => panic!("no kind {other}"),
    }
}

fn value(kind: char, words: &mut Words<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    if kind == 'b' {
        return out;
    }
    words.expect("=");
    match kind {
        'o' => out.push(words.number()),
        'h' => out.extend(words.number::<u16>().to_be_bytes()),
        'l' => out.extend(words.number::<u32>().to_be_bytes()),
        'L' => out.extend(words.number::<u64>().to_be_bytes()),
        's' => put_short(&mut out, &words.string()),
        'S' => put_long(&mut out, &words.string()),
        'F' => put_long(&mut out, &words.table()),
        other => panic!("no kind {other}"),
    }
    out
}

/// A content header's payload.
fn header(words: &mut Words<'_>) -> Vec<u8> {
    let (mut size, mut class_id, mut weight, mut raw) = (0_u64, 60_u16, 0_u16, None);
    let mut properties = Properties::default();
    while !words.is_empty() {
        let name = words.name();
        if properties.take(name, words) {
            continue;
        }
        words.expect("=");
        match name {
            "size" => size = words.number(),
            "class-id" => class_id = words.number(),
            "weight" => weight = words.number(),
            "properties" => raw = Some(words.string()),
            _ => words.fail("an unknown part of a header"),
        }
    }
    let raw = raw.unwrap_or_else(|| properties.bytes());
    [&class_id.to_be_bytes()[..], &weight.to_be_bytes(), &size.to_be_bytes(), &raw].concat()
}

fn publish(channel: u16, words: &mut Words<'_>, frame_max: usize) -> Vec<u8> {
    let method = methods::by_name("basic.publish").unwrap();
    let fields: Vec<(&str, char)> = methods::fields(method).collect();
    let (mut body, mut piece) = (Vec::new(), frame_max - FRAME_OVERHEAD);
    let (mut given, mut properties) = (Vec::new(), Properties::default());
    while !words.is_empty() {
        let name = words.name();
        if properties.take(name, words) {
            continue;
        }
        if let Some((field, kind)) = fields.iter().find(|(field, _)| *field == name) {
            given.push((*field, value(*kind, words)));
            continue;
        }
        words.expect("=");
        match name {
            "body" => body = words.string(),
            "cut" => piece = words.number(),
            _ => words.fail("an unknown part of a publish"),
        }
    }
    let size = u64::try_from(body.len()).unwrap();
    let head = [&60_u16.to_be_bytes()[..], &[0, 0], &size.to_be_bytes(), &properties.bytes()];
    let mut out = frame(1, channel, &assemble(method, &fields, &mut given));
    out.extend(frame(2, channel, &head.concat()));
    body.chunks(piece).for_each(|piece| out.extend(frame(3, channel, piece)));
    out
}

/// The properties of a message, one slot each.
#[derive(Default)]
struct Properties {
    values: [Option<Vec<u8>>; 14],
}

impl Properties {
    /// Takes the value of the property `name`, if there is one of that name.
    fn take(&mut self, name: &str, words: &mut Words<'_>) -> bool {
        let found = PROPERTIES.iter().position(|(known, _)| *known == name);
        if let Some(at) = found {
            self.values[at] = Some(value(PROPERTIES[at].1, words));
        }
        found.is_some()
    }

    fn bytes(&self) -> Vec<u8> {
        let flags = |at: usize| u16::from(self.values[at].is_some()) << (15 - at);
        let flags: u16 = (0..self.values.len()).map(flags).sum();
        let mut out = flags.to_be_bytes().to_vec();
        self.values.iter().flatten().for_each(|value| out.extend(value));
        out
    }
}
