//! Output of the broker to one client: whole frames, in an order that a client understands.

use std::collections::{BTreeMap, BTreeSet};

use amqp::content_header::ContentHeader;
use amqp::frame::{FrameType, split_frame};
use amqp::method::Method;
use amqp::properties::Properties;
use amqp::protocol_header::AMQP_0_9_1;

/// Largest frame before the tuning.
const FRAME_MAX: u32 = 131_072;

/// One client's ear.
#[derive(Default, Debug)]
pub(super) struct Ear {
    unread: Vec<u8>,
    channels: BTreeMap<u16, Channel>,
    /// After `connection.close` only `connection.close-ok` is sent.
    is_closed: bool,
    /// The other protocol header was offered; nothing follows.
    is_refused: bool,
}

#[derive(Default, Debug)]
struct Channel {
    content: Content,
    /// The newest delivery tag.
    delivered: u64,
    /// Publishes that were confirmed or refused.
    confirmed: BTreeSet<u64>,
    /// All publishes up to here were.
    confirmed_up_to: u64,
    is_closed: bool,
}

/// Frame that has to follow.
#[derive(Default, Debug)]
enum Content {
    #[default]
    None,
    Header,
    /// So many bytes of a body.
    Body(u64),
}

impl Ear {
    /// Reads bytes of a broker whose frames have at most `frame_max` bytes, if that is known.
    pub(super) fn hear(&mut self, bytes: &[u8], frame_max: Option<u32>) {
        self.unread.extend_from_slice(bytes);
        let unread = std::mem::take(&mut self.unread);
        let mut rest = unread.as_slice();
        // No frame begins so.
        if rest.first() == AMQP_0_9_1.first() {
            let Some(after) = rest.strip_prefix(&AMQP_0_9_1) else {
                assert!(AMQP_0_9_1.starts_with(rest), "another protocol: {}", rest.escape_ascii());
                self.unread = unread;
                return;
            };
            self.is_refused = true;
            rest = after;
        }
        assert!(!self.is_refused || rest.is_empty(), "said after a protocol header");
        loop {
            match split_frame(rest, frame_max.unwrap_or(FRAME_MAX)) {
                Ok(None) => break,
                Ok(Some((frame, used))) => {
                    let channel = frame.channel;
                    match frame.frame_type {
                        FrameType::Method => self.method(channel, frame.payload),
                        FrameType::Header => self.channel(channel).header(frame.payload),
                        FrameType::Body => self.channel(channel).body(frame.payload.len() as u64),
                        FrameType::Heartbeat => assert_eq!(channel, 0),
                    }
                    rest = &rest[used..];
                }
                Err(error) => panic!("the broker has said what is no frame: {error}"),
            }
        }
        self.unread = rest.to_vec();
    }

    /// True if no frame or content is incomplete.
    pub(super) fn is_idle(&self) -> bool {
        self.unread.is_empty()
            && self.channels.values().all(|channel| matches!(channel.content, Content::None))
    }

    fn channel(&mut self, number: u16) -> &mut Channel {
        self.channels.entry(number).or_default()
    }

    fn method(&mut self, number: u16, payload: &[u8]) {
        let method = Method::decode(payload).expect("the broker says methods");
        let name = method.name();
        assert!(is_servers(name), "the broker says {name}");
        assert!(!self.is_closed || name == "connection.close-ok", "{name} after connection.close");
        assert_eq!(number == 0, name.starts_with("connection."), "{name} on channel {number}");
        if name == "connection.close" {
            self.is_closed = true;
            return;
        }
        let channel = self.channel(number);
        assert!(matches!(channel.content, Content::None), "{name} within a content");
        match method {
            Method::ChannelOpenOk(_) => *channel = Channel::default(),
            Method::ChannelClose(_) => {
                assert!(!channel.is_closed, "closed twice");
                channel.is_closed = true;
            }
            Method::ChannelCloseOk(_) => {}
            _ => assert!(!channel.is_closed, "{name} after channel.close"),
        }
        match method {
            Method::BasicDeliver(deliver) => channel.delivery(deliver.delivery_tag),
            Method::BasicGetOk(get_ok) => channel.delivery(get_ok.delivery_tag),
            Method::BasicAck(ack) => channel.confirm(ack.delivery_tag, ack.multiple),
            Method::BasicNack(nack) => channel.confirm(nack.delivery_tag, nack.multiple),
            _ => {}
        }
        if method.has_content() {
            channel.content = Content::Header;
        }
    }
}

impl Channel {
    /// Tags count up without a gap.
    fn delivery(&mut self, tag: u64) {
        assert_eq!(tag, self.delivered + 1, "delivery tags");
        self.delivered = tag;
    }

    /// Every publish is answered once.
    fn confirm(&mut self, seq: u64, multiple: bool) {
        assert!(seq > self.confirmed_up_to && !self.confirmed.contains(&seq), "{seq} again");
        if multiple {
            self.confirmed_up_to = seq;
            self.confirmed.retain(|other| *other > seq);
        } else {
            self.confirmed.insert(seq);
        }
    }

    fn header(&mut self, payload: &[u8]) {
        assert!(matches!(self.content, Content::Header), "a header that nothing announced");
        let header = ContentHeader::parse(payload).expect("a content header");
        assert_eq!((header.class_id, header.weight), (60, 0));
        let properties = Properties::parse(header.properties).expect("properties");
        assert!(!properties.needs_normalising(header.properties));
        self.content = match header.body_size {
            0 => Content::None,
            size => Content::Body(size),
        };
    }

    fn body(&mut self, size: u64) {
        let Content::Body(left) = self.content else { panic!("a body that nothing announced") };
        assert!(size > 0 && size <= left, "{size} bytes of {left}");
        self.content = match left - size {
            0 => Content::None,
            left => Content::Body(left),
        };
    }
}

/// True if a server may send the method.
fn is_servers(name: &str) -> bool {
    let says_itself = [
        "connection.start",
        "connection.tune",
        "connection.close",
        "connection.blocked",
        "connection.unblocked",
        "channel.close",
        "basic.return",
        "basic.deliver",
        "basic.get-empty",
        "basic.cancel",
        "basic.ack",
        "basic.nack",
    ];
    name.ends_with("-ok") && !["connection.start-ok", "connection.tune-ok"].contains(&name)
        || says_itself.contains(&name)
}
