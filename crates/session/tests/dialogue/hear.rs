//! Output of the server as lines of a dialogue.
//!
//! Reads them by itself and strictly: a frame that is larger than agreed, a method that the codec
//! does not read to the same bytes, a content that is interrupted or has the wrong length is a
//! failure, regardless of the expectations.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::methods::{self, PROPERTIES};
use crate::say::FRAME_OVERHEAD;
use crate::words::shown;

/// The frame that a channel must send next.
#[derive(Clone, Copy)]
enum Awaited {
    Header,
    /// So many bytes of a body.
    Body(u64),
}

/// The client's ear: whole frames become lines, the rest waits.
#[derive(Default)]
pub(crate) struct Ear {
    unheard: Vec<u8>,
    contents: BTreeMap<u16, Awaited>,
}

impl Ear {
    /// The lines of everything that is complete with `bytes`. No frame may be larger than
    /// `frame_max`.
    pub(crate) fn hear(&mut self, bytes: &[u8], frame_max: usize) -> Vec<String> {
        self.unheard.extend_from_slice(bytes);
        let all = std::mem::take(&mut self.unheard);
        let mut rest = all.as_slice();
        let mut lines = Vec::new();
        loop {
            if rest.starts_with(b"AMQP") && rest.len() >= 8 {
                lines.push(format!("protocol-header {}", shown(&rest[4..8])));
                rest = &rest[8..];
                continue;
            }
            let Some((frame_type, channel, payload)) = whole_frame(&mut rest) else { break };
            assert!(payload.len() + FRAME_OVERHEAD <= frame_max, "a frame larger than agreed");
            lines.push(self.line(frame_type, channel, payload));
        }
        self.unheard = rest.to_vec();
        lines
    }

    /// True if no frame or content is incomplete.
    pub(crate) fn is_idle(&self) -> bool {
        self.unheard.is_empty() && self.contents.is_empty()
    }

    fn line(&mut self, frame_type: u8, channel: u16, payload: &[u8]) -> String {
        let awaited = self.contents.remove(&channel);
        let (name, line) = match (frame_type, awaited) {
            (1, None) => self.method(channel, payload),
            (2, Some(Awaited::Header)) => ("header", self.header(channel, payload)),
            (3, Some(Awaited::Body(left))) => {
                let size = u64::try_from(payload.len()).unwrap();
                assert!(
                    size > 0 && size <= left,
                    "a body frame of {size} where {left} are missing"
                );
                if left > size {
                    self.contents.insert(channel, Awaited::Body(left - size));
                }
                ("body", format!("body {}", shown(payload)))
            }
            (8, None) => ("heartbeat", "heartbeat".to_owned()),
            (other, _) => panic!("a frame of type {other} on channel {channel} is out of place"),
        };
        if channel == methods::usual_channel(name) { line } else { format!("{channel} {line}") }
    }

    fn method(&mut self, channel: u16, payload: &[u8]) -> (&'static str, String) {
        check_with_codec(payload);
        let mut reader = Reader(payload);
        let (class_id, method_id) = (reader.number(2), reader.number(2));
        let ids = (u16::try_from(class_id).unwrap(), u16::try_from(method_id).unwrap());
        let method = methods::by_id(ids.0, ids.1).expect("a method that exists");
        if ["basic.deliver", "basic.get-ok", "basic.return"].contains(&method.0) {
            self.contents.insert(channel, Awaited::Header);
        }
        let mut line = method.0.to_owned();
        let mut bits = None;
        for (field, kind) in methods::fields(method) {
            if kind == 'b' {
                let (byte, place) = bits.unwrap_or_else(|| (reader.number(1), 0));
                bits = Some((byte, place + 1));
                if byte >> place & 1 == 1 {
                    write!(line, " {field}").unwrap();
                }
                continue;
            }
            bits = None;
            let value = reader.shown(kind);
            if field != "reserved" || value != "\"\"" {
                write!(line, " {field}={value}").unwrap();
            }
        }
        assert!(reader.0.is_empty(), "bytes follow {}", method.0);
        (method.0, line)
    }

    fn header(&mut self, channel: u16, payload: &[u8]) -> String {
        let mut reader = Reader(payload);
        assert_eq!((reader.number(2), reader.number(2)), (60, 0), "class and weight of a header");
        let size = reader.number(8);
        if size > 0 {
            self.contents.insert(channel, Awaited::Body(size));
        }
        let mut line = format!("header size={size}");
        let flags = reader.number(2);
        for (at, (name, kind)) in PROPERTIES.iter().enumerate() {
            if flags >> (15 - at) & 1 == 1 {
                write!(line, " {name}={}", reader.shown(*kind)).unwrap();
            }
        }
        assert!(flags & 3 == 0 && reader.0.is_empty(), "bytes follow the properties");
        line
    }
}

/// Takes a frame off the front, if it is whole.
pub(crate) fn whole_frame<'a>(rest: &mut &'a [u8]) -> Option<(u8, u16, &'a [u8])> {
    let head: [u8; 7] = *rest.first_chunk()?;
    let size = usize::try_from(u32::from_be_bytes([head[3], head[4], head[5], head[6]])).unwrap();
    if rest.len() < size + FRAME_OVERHEAD {
        return None;
    }
    let (frame, behind) = rest.split_at(size + FRAME_OVERHEAD);
    assert_eq!(frame.last(), Some(&0xCE), "the end of a frame");
    *rest = behind;
    Some((head[0], u16::from_be_bytes([head[1], head[2]]), &frame[7..7 + size]))
}

/// Checks that the codec writes the same bytes that it has read.
fn check_with_codec(payload: &[u8]) {
    let method = amqp::method::Method::decode(payload).expect("a method that the codec reads");
    let mut again = Vec::new();
    method.encode(&mut again);
    assert_eq!(again, payload, "{} is written as it is read", method.name());
}

/// The rest of a payload. A read past the end fails the test.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }

    fn number(&mut self, width: usize) -> u64 {
        self.take(width).iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    fn sized(&mut self, width: usize) -> &'a [u8] {
        let size = usize::try_from(self.number(width)).unwrap();
        self.take(size)
    }

    fn shown(&mut self, kind: char) -> String {
        match kind {
            'o' => self.number(1).to_string(),
            'h' => self.number(2).to_string(),
            'l' => self.number(4).to_string(),
            'L' => self.number(8).to_string(),
            's' => shown(self.sized(1)),
            'S' => shown(self.sized(4)),
            'F' => table(self.sized(4)),
            other => panic!("no kind {other}"),
        }
    }

    fn value(&mut self) -> String {
        let tag = char::from(self.take(1)[0]);
        let value = match tag {
            't' | 'B' => self.number(1).to_string(),
            'b' => i8::from_be_bytes(self.fixed()).to_string(),
            's' => i16::from_be_bytes(self.fixed()).to_string(),
            'u' => self.number(2).to_string(),
            'I' => i32::from_be_bytes(self.fixed()).to_string(),
            'i' => self.number(4).to_string(),
            'l' | 'L' => i64::from_be_bytes(self.fixed()).to_string(),
            'f' => format!("{:?}", f32::from_be_bytes(self.fixed())),
            'd' => format!("{:?}", f64::from_be_bytes(self.fixed())),
            'T' => self.number(8).to_string(),
            'D' => format!("{}:{}", self.number(1), self.number(4)),
            'S' | 'x' => shown(self.sized(4)),
            'F' => table(self.sized(4)),
            'A' => {
                let mut items = Reader(self.sized(4));
                let mut shown = Vec::new();
                while !items.0.is_empty() {
                    shown.push(items.value());
                }
                format!("[{}]", shown.join(" "))
            }
            'V' => return "V".to_owned(),
            other => panic!("no type {other}"),
        };
        format!("{tag}:{value}")
    }

    fn fixed<const N: usize>(&mut self) -> [u8; N] {
        self.take(N).try_into().unwrap()
    }
}

fn table(bytes: &[u8]) -> String {
    let mut reader = Reader(bytes);
    let mut fields = Vec::new();
    while !reader.0.is_empty() {
        let key = shown(reader.sized(1));
        fields.push(format!("{key}={}", reader.value()));
    }
    format!("{{{}}}", fields.join(" "))
}
