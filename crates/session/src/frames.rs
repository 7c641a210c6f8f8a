//! Frames of an open connection, translated to requests.
//!
//! A publish whose three frames are complete in the buffer, the common case, becomes a command that
//! borrows from the buffer. Any other publish is assembled frame by frame.

use std::borrow::Cow;

use amqp::content_header::{CLASS_BASIC, ContentHeader};
use amqp::frame::{Frame, FrameType, split_frame};
use amqp::limits::{BODY_SIZE_MAX, CONTENT_HEADER_SIZE, FRAME_HEADER_SIZE, FRAME_OVERHEAD};
use amqp::method::{BasicPublish, Method, MethodError, MethodErrorKind, MethodId};
use amqp::reply_code::ReplyCode;
use broker::refusal::Refusal;
use broker::{ChannelNumber, Command, Content, Publish, Request};
use bytes::Bytes;

use crate::content_assembly::{Assembly, ChannelContent};
use crate::limits::{ASSEMBLY_BYTES_MAX, EMPTY_BODY_FRAMES_MAX};
use crate::methods::{PublishMethod, command};
use crate::session::{Phase, Session, Step};

/// Id of `basic.publish`, which errors in a content name.
const PUBLISH: MethodId = MethodId { class_id: 60, method_id: 40 };

/// RabbitMQ's texts for a wrong frame in place of the header and of the body of a publish.
const NO_HEADER: &str =
    "expected content header for class 60, got non content header frame instead";
const NO_BODY: &str = "expected content body, got non content body frame instead";

/// Frames behind a `basic.publish` in the buffer.
enum Lookahead<'a> {
    /// The whole content, and its length in the buffer in bytes.
    Content(Content<'a>, usize),
    /// A part of the content that may become whole: wait for more bytes.
    Wait,
    /// Any other frames: read them one by one.
    Frames,
}

impl Session {
    pub(crate) fn running<'a>(&mut self, input: &mut &'a [u8]) -> Option<Step<'a>> {
        let (frame, used) = match split_frame(input, self.payload_max) {
            Ok(Some(split)) => split,
            Ok(None) => return Some(Step::More),
            Err(error) => {
                let text = error.to_string();
                let refused = bytes_refused(ReplyCode::FrameError, text, MethodId::NONE);
                return Some(self.refuse(0, refused));
            }
        };
        let rest = input.get(used..).unwrap_or_default();
        let channel = frame.channel;
        let step = match frame.frame_type {
            FrameType::Heartbeat if channel == 0 => Ok(None),
            FrameType::Heartbeat => Err(misplaced(&frame)),
            FrameType::Method if channel == 0 => self.connection_method(frame.payload),
            FrameType::Method => match self.channel_method(channel, frame.payload, rest) {
                Ok((step, content)) => {
                    if matches!(step, Some(Step::More | Step::PublishBlocked)) {
                        // The method is read again when its content is there, or the alarm is over.
                        return step;
                    }
                    *input = rest.get(content..).unwrap_or_default();
                    return step;
                }
                Err(error) => Err(error),
            },
            FrameType::Header | FrameType::Body if channel == 0 => Err(misplaced(&frame)),
            FrameType::Header | FrameType::Body => self.content_frame(&frame),
        };
        *input = rest;
        match step {
            Ok(step) => step,
            Err(refused) => Some(self.refuse(channel, refused)),
        }
    }

    /// Refuses a frame; the core closes the channel or the connection. After bytes that are no AMQP, no
    /// more input is read.
    fn refuse<'a>(&mut self, channel: u16, refused: Refused) -> Step<'a> {
        let Refused { refusal, method, about } = refused;
        let is_fatal = about == About::Bytes && refusal.code.is_connection_error();
        if is_fatal {
            self.phase = Phase::Refused;
        }
        let channel = ChannelNumber(if is_fatal { 0 } else { channel });
        Step::Request(Request { channel, method, command: Command::Refused(refusal) })
    }

    fn connection_method<'a>(&mut self, payload: &'a [u8]) -> Refusable<Option<Step<'a>>> {
        let method = Method::decode(payload).map_err(|error| malformed(error, payload, 0))?;
        match method {
            Method::ConnectionClose(_) => {
                self.phase = Phase::ClosedByClient;
                Ok(Some(Step::Close))
            }
            Method::ConnectionUpdateSecret(_) => Ok(Some(Step::UpdateSecret)),
            other => {
                let text = "unexpected method in connection state running";
                Err(bytes_refused(ReplyCode::ChannelError, text, other.id()))
            }
        }
    }

    /// Handles a method on a channel. `rest` is the input behind it. Returns the step and the number of
    /// bytes of `rest` that were used.
    fn channel_method<'a>(
        &mut self,
        channel: u16,
        payload: &'a [u8],
        rest: &'a [u8],
    ) -> Refusable<(Option<Step<'a>>, usize)> {
        match self.channels.get(&channel) {
            None => return self.unopened_channel(channel, payload),
            Some(ChannelContent::Method | ChannelContent::Refused) => {}
            Some(ChannelContent::Header(_)) => {
                return Err(bytes_refused(ReplyCode::UnexpectedFrame, NO_HEADER, PUBLISH));
            }
            Some(ChannelContent::Body(_)) => {
                return Err(bytes_refused(ReplyCode::UnexpectedFrame, NO_BODY, PUBLISH));
            }
        }
        let method = Method::decode(payload).map_err(|error| malformed(error, payload, channel))?;
        let is_refused = matches!(self.channels.get(&channel), Some(ChannelContent::Refused));
        let id = method.id();
        match method {
            Method::ChannelClose(_) | Method::ChannelCloseOk(_) => {
                self.channels.remove(&channel);
            }
            _ if is_refused => return Ok((None, 0)),
            Method::BasicPublish(publish) => return self.publish(channel, &publish, rest),
            _ => {}
        }
        let command = command(&method).map_err(|refusal| command_refused(refusal, id))?;
        Ok((Some(request(channel, id, command)), 0))
    }

    /// Handles a method on a channel that is not open: `channel.open`, or `channel.close-ok` after both
    /// sides have closed the channel, which the core knows.
    fn unopened_channel<'a>(
        &mut self,
        channel: u16,
        payload: &'a [u8],
    ) -> Refusable<(Option<Step<'a>>, usize)> {
        let method = Method::decode(payload).map_err(|error| malformed(error, payload, channel))?;
        let id = method.id();
        match method {
            Method::ChannelOpen(_) => {
                let open = self.channels.len();
                if self.channel_max > 0 && open >= usize::from(self.channel_max) {
                    let max = self.channel_max;
                    let text = format!(
                        "number of channels opened ({open}) has reached the negotiated channel_max \
                         ({max})"
                    );
                    return Err(bytes_refused(ReplyCode::NotAllowed, text, MethodId::NONE));
                }
                self.channels.insert(channel, ChannelContent::Method);
                Ok((Some(request(channel, id, Command::OpenChannel)), 0))
            }
            Method::ChannelCloseOk(_) => {
                Ok((Some(request(channel, id, Command::ChannelCloseOk)), 0))
            }
            _ => {
                let text = "expected 'channel.open'";
                Err(bytes_refused(ReplyCode::ChannelError, text, id))
            }
        }
    }

    fn publish<'a>(
        &mut self,
        channel: u16,
        publish: &BasicPublish<'a>,
        rest: &'a [u8],
    ) -> Refusable<(Option<Step<'a>>, usize)> {
        if self.publishes_blocked {
            return Ok((Some(Step::PublishBlocked), 0));
        }
        let method = PublishMethod {
            exchange: Cow::Borrowed(publish.exchange),
            routing_key: Cow::Borrowed(publish.routing_key),
            mandatory: publish.mandatory,
            immediate: publish.immediate,
        };
        match self.look_ahead(channel, rest) {
            Lookahead::Content(content, used) => {
                Ok((Some(published(channel, method, content)), used))
            }
            Lookahead::Wait => Ok((Some(Step::More), 0)),
            Lookahead::Frames => {
                let method = PublishMethod {
                    exchange: method.exchange.into_owned().into(),
                    routing_key: method.routing_key.into_owned().into(),
                    mandatory: method.mandatory,
                    immediate: method.immediate,
                };
                self.channels.insert(channel, ChannelContent::Header(Box::new(method)));
                Ok((None, 0))
            }
        }
    }

    /// Looks for the content of a publish directly behind its method.
    fn look_ahead<'a>(&self, channel: u16, rest: &'a [u8]) -> Lookahead<'a> {
        let (header, header_len) = match split_frame(rest, self.payload_max) {
            Ok(Some(split)) => split,
            Ok(None) => return Lookahead::Wait,
            Err(_) => return Lookahead::Frames,
        };
        if header.frame_type != FrameType::Header || header.channel != channel {
            return Lookahead::Frames;
        }
        let Ok(content) = ContentHeader::parse(header.payload) else { return Lookahead::Frames };
        let one_frame = u64::from(self.payload_max).saturating_sub(FRAME_OVERHEAD as u64);
        let body_max = self.options.message_bytes_max.min(one_frame);
        if content.class_id != CLASS_BASIC || content.weight != 0 || content.body_size > body_max {
            return Lookahead::Frames;
        }
        let properties_len = content.properties.len();
        let start = FRAME_HEADER_SIZE + CONTENT_HEADER_SIZE;
        let body_start = properties_len + FRAME_OVERHEAD;
        let (end, used) = if content.body_size == 0 {
            (start + properties_len, header_len)
        } else {
            let behind = rest.get(header_len..).unwrap_or_default();
            let (body, body_len) = match split_frame(behind, self.payload_max) {
                Ok(Some(split)) => split,
                Ok(None) => return Lookahead::Wait,
                Err(_) => return Lookahead::Frames,
            };
            let is_whole = body.frame_type == FrameType::Body
                && body.channel == channel
                && body.payload.len() as u64 == content.body_size;
            if !is_whole {
                return Lookahead::Frames;
            }
            (start + body_start + body.payload.len(), header_len + body_len)
        };
        let Some(bytes) = rest.get(start..end) else { return Lookahead::Frames };
        let body_start = body_start.min(bytes.len());
        Lookahead::Content(Content::Framed { bytes, properties_len, body_start }, used)
    }

    /// Handles a header or body frame.
    fn content_frame<'a>(&mut self, frame: &Frame<'_>) -> Refusable<Option<Step<'a>>> {
        let state = self.channels.remove(&frame.channel);
        match (state, frame.frame_type) {
            (Some(ChannelContent::Header(publish)), FrameType::Header) => {
                self.content_header(frame, *publish)
            }
            (Some(ChannelContent::Body(assembly)), FrameType::Body) => {
                self.content_body(frame, assembly)
            }
            (Some(ChannelContent::Refused), _) => {
                self.channels.insert(frame.channel, ChannelContent::Refused);
                Ok(None)
            }
            (Some(ChannelContent::Header(_)), _) => {
                Err(bytes_refused(ReplyCode::UnexpectedFrame, NO_HEADER, PUBLISH))
            }
            (Some(ChannelContent::Body(_)), _) => {
                Err(bytes_refused(ReplyCode::UnexpectedFrame, NO_BODY, PUBLISH))
            }
            (Some(ChannelContent::Method) | None, _) => {
                let text = "expected method frame, got non method frame instead";
                Err(bytes_refused(ReplyCode::UnexpectedFrame, text, MethodId::NONE))
            }
        }
    }

    fn content_header<'a>(
        &mut self,
        frame: &Frame<'_>,
        publish: PublishMethod<'static>,
    ) -> Refusable<Option<Step<'a>>> {
        let unexpected = |text: &str| bytes_refused(ReplyCode::UnexpectedFrame, text, PUBLISH);
        let header = ContentHeader::parse(frame.payload).map_err(|_| {
            unexpected("expected content header for class 60, got a malformed one instead")
        })?;
        if header.class_id != CLASS_BASIC {
            let class = header.class_id;
            return Err(unexpected(&format!(
                "expected content header for class 60, got one for class {class} instead"
            )));
        }
        if header.weight != 0 {
            return Err(unexpected(NO_HEADER));
        }
        let (size, max) = (header.body_size, self.options.message_bytes_max);
        if size > BODY_SIZE_MAX {
            let text =
                format!("content body size {size} exceeds maximum allowed size {BODY_SIZE_MAX}");
            return Err(bytes_refused(ReplyCode::FrameError, text, PUBLISH));
        }
        if size > max {
            self.channels.insert(frame.channel, ChannelContent::Refused);
            let text = format!("message size {size} is larger than configured max size {max}");
            return Err(command_refused(Refusal::precondition_failed(text), PUBLISH));
        }
        let properties = Bytes::copy_from_slice(header.properties);
        if size == 0 {
            self.channels.insert(frame.channel, ChannelContent::Method);
            let content = Content::Assembled { properties, body: Bytes::new() };
            return Ok(Some(published(frame.channel, publish, content)));
        }
        // No memory is reserved for an announced size: the client may never send the bytes.
        let assembly =
            Assembly { publish, properties, body: Vec::new(), body_size: size, empty_frames: 0 };
        self.channels.insert(frame.channel, ChannelContent::Body(Box::new(assembly)));
        Ok(None)
    }

    fn content_body<'a>(
        &mut self,
        frame: &Frame<'_>,
        mut assembly: Box<Assembly>,
    ) -> Refusable<Option<Step<'a>>> {
        let frame_error = |text: &str| bytes_refused(ReplyCode::FrameError, text, PUBLISH);
        let len = frame.payload.len() as u64;
        if len > assembly.missing() {
            return Err(frame_error("content body frame exceeds remaining content size"));
        }
        if len == 0 {
            assembly.empty_frames += 1;
            if assembly.empty_frames > EMPTY_BODY_FRAMES_MAX {
                return Err(frame_error("too many content body frames without payload"));
            }
        }
        self.assembling_bytes += len;
        let assembling_bytes_max = ASSEMBLY_BYTES_MAX.max(self.options.message_bytes_max);
        if self.assembling_bytes > assembling_bytes_max {
            let text = format!(
                "more than {assembling_bytes_max} bytes of unfinished messages on one connection"
            );
            return Err(bytes_refused(ReplyCode::ResourceError, text, PUBLISH));
        }
        assembly.body.extend_from_slice(frame.payload);
        if assembly.missing() > 0 {
            self.channels.insert(frame.channel, ChannelContent::Body(assembly));
            return Ok(None);
        }
        let left = self.assembling_bytes.checked_sub(assembly.body_size);
        self.assembling_bytes = left.expect("all bytes of a body were counted when they came");
        self.channels.insert(frame.channel, ChannelContent::Method);
        let Assembly { publish, properties, body, .. } = *assembly;
        let content = Content::Assembled { properties, body: body.into() };
        Ok(Some(published(frame.channel, publish, content)))
    }
}

/// Result of a step that can be refused.
type Refusable<T> = Result<T, Refused>;

/// A refused frame or method.
struct Refused {
    refusal: Refusal,
    /// Method that the error names.
    method: MethodId,
    about: About,
}

/// Subject of a refusal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum About {
    /// The bytes: they are no valid AMQP in any state of the channel.
    Bytes,
    /// The command, which is ignored on a channel that is closing.
    Command,
}

/// Refusal of bytes that are no AMQP.
fn bytes_refused(code: ReplyCode, text: impl Into<String>, method: MethodId) -> Refused {
    Refused { refusal: Refusal::new(code, text), method, about: About::Bytes }
}

/// Refusal of a command.
fn command_refused(refusal: Refusal, method: MethodId) -> Refused {
    Refused { refusal, method, about: About::Command }
}

fn request(channel: u16, method: MethodId, command: Command<'_>) -> Step<'_> {
    Step::Request(Request { channel: ChannelNumber(channel), method, command })
}

/// The step for a complete publish.
fn published<'a>(channel: u16, method: PublishMethod<'a>, content: Content<'a>) -> Step<'a> {
    let PublishMethod { exchange, routing_key, mandatory, immediate } = method;
    if immediate {
        let refusal = Refusal::not_implemented("immediate=true");
        return request(channel, PUBLISH, Command::Refused(refusal));
    }
    let publish = Publish { exchange, routing_key, mandatory, content };
    request(channel, PUBLISH, Command::Publish(publish))
}

/// Refusal of a frame that is not allowed on its channel.
fn misplaced(frame: &Frame<'_>) -> Refused {
    bytes_refused(ReplyCode::UnexpectedFrame, frame.to_string(), MethodId::NONE)
}

/// Refusal of a method that cannot be decoded.
///
/// COMPAT: undecodable methods: 540 for an unknown method and 502 for a malformed table, where
/// RabbitMQ drops the socket.
fn malformed(error: MethodError, payload: &[u8], channel: u16) -> Refused {
    let id = error.id.unwrap_or(MethodId::NONE);
    let text = error.explanation(payload);
    match error.kind {
        MethodErrorKind::TooShort
        | MethodErrorKind::Malformed(_)
        | MethodErrorKind::TrailingBytes(_) => bytes_refused(ReplyCode::FrameError, text, id),
        MethodErrorKind::MalformedUtf8 => {
            let id = if channel == 0 { id } else { MethodId::NONE };
            bytes_refused(ReplyCode::FrameError, text, id)
        }
        MethodErrorKind::UnknownMethod => {
            let text = format!("unknown method {} of class {}", id.method_id, id.class_id);
            bytes_refused(ReplyCode::NotImplemented, text, id)
        }
        MethodErrorKind::MalformedTable(_) => bytes_refused(ReplyCode::SyntaxError, text, id),
    }
}
