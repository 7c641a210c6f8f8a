//! The channel of a client by which it operates on messages that wait: requests, returns and answers.

use std::collections::BTreeSet;

use amqp::content_header::ContentHeader;
use amqp::frame::{Frame, FrameType};
use amqp::method::{ChannelOpen, ConfirmSelect, Method};
use amqp::properties::Properties;
use broker::{ScheduleOperation, ScheduleRequest, ScheduleSelector, ScheduledMessage};

use crate::checks::book::Book;
use crate::clients::confirms::Confirms;
use crate::clients::handshake::frame;

/// The channel of the operations.
pub(crate) const OPERATIONS_CHANNEL: u16 = 2;

/// Header by which a returned request is known.
pub(super) const REQUEST: &str = "x-request";

/// The request to drop a message that waits.
pub(crate) fn cancel<M>(message: ScheduledMessage<M>) -> ScheduleRequest {
    ScheduleRequest {
        target: message.target,
        selector: ScheduleSelector::Handle(message.handle),
        operation: ScheduleOperation::Cancel,
    }
}

/// Requests of one connection that are not answered.
#[derive(Default, Debug)]
pub(crate) struct Operations {
    confirms: Confirms,
    /// True if the content of a returned request follows.
    is_returning: bool,
    returned: BTreeSet<u64>,
}

impl Operations {
    /// The octets that open the channel.
    pub(super) fn begin() -> Vec<u8> {
        let mut out = frame(OPERATIONS_CHANNEL, ChannelOpen);
        out.extend(frame(OPERATIONS_CHANNEL, ConfirmSelect { nowait: false }));
        out
    }

    /// Counts a request.
    pub(super) fn sends(&mut self, request: u64) {
        self.confirms.sends(request);
    }

    /// Takes a frame of the channel.
    pub(super) fn heard(&mut self, frame: &Frame<'_>, book: &mut Book) {
        match frame.frame_type {
            FrameType::Method => match Method::decode(frame.payload) {
                Ok(method) => self.method(&method, book),
                Err(error) => {
                    book.violation(format!("a client gets a method that is none: {error}"));
                }
            },
            FrameType::Header if std::mem::take(&mut self.is_returning) => {
                self.returned.extend(request_in(frame.payload));
            }
            FrameType::Header | FrameType::Body | FrameType::Heartbeat => {}
        }
    }

    fn method(&mut self, method: &Method<'_>, book: &mut Book) {
        match method {
            Method::BasicReturn(_) => self.is_returning = true,
            Method::BasicAck(ack) => {
                for request in self.confirms.take(ack.delivery_tag, ack.multiple) {
                    let is_found = !self.returned.remove(&request);
                    book.operated(request, is_found);
                }
            }
            Method::BasicNack(_) => book.violation("an operation is refused".to_owned()),
            Method::ChannelClose(close) => {
                book.violation(format!("a channel is closed: {}", close.reply_text));
            }
            _ => {}
        }
    }
}

/// The number of a request in its content header.
fn request_in(payload: &[u8]) -> Option<u64> {
    let header = ContentHeader::parse(payload).ok()?;
    let headers = Properties::parse(header.properties).ok()?.headers?;
    headers.get(REQUEST)?.as_integer().and_then(|number| u64::try_from(number).ok())
}
