//! The codes with which a channel or connection is closed, and their texts.
//!
//! Only names of codes and the cutting of texts are decided here. The caller chooses the code and the
//! explanation.

use std::fmt;

use crate::limits::REPLY_TEXT_BYTES_MAX;

/// End of a text that was cut.
const ELLIPSIS: &str = "...";

/// Reason for which a channel or connection closes, or a message is returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum ReplyCode {
    /// 200: nothing is wrong.
    ReplySuccess = 200,
    /// 311: the content is too large.
    ContentTooLarge = 311,
    /// 312: no queue for a mandatory message.
    NoRoute = 312,
    /// 313: no consumer for an immediate message.
    NoConsumers = 313,
    /// 320: an operator closed the connection.
    ConnectionForced = 320,
    /// 402: no such virtual host.
    InvalidPath = 402,
    /// 403: not permitted.
    AccessRefused = 403,
    /// 404: no such exchange, queue or virtual host.
    NotFound = 404,
    /// 405: another connection has the queue exclusively.
    ResourceLocked = 405,
    /// 406: allowed, but not in this state or with these arguments.
    PreconditionFailed = 406,
    /// 501: bytes that are no frame.
    FrameError = 501,
    /// 502: a frame whose fields make no sense.
    SyntaxError = 502,
    /// 503: a method that may not be sent here.
    CommandInvalid = 503,
    /// 504: a method on a channel that is not open, or open already.
    ChannelError = 504,
    /// 505: a frame of the wrong type for this moment.
    UnexpectedFrame = 505,
    /// 506: a resource of the server is exhausted.
    ResourceError = 506,
    /// 530: forbidden, with any permissions.
    NotAllowed = 530,
    /// 540: the server cannot do this.
    NotImplemented = 540,
    /// 541: the server is at fault.
    InternalError = 541,
}

impl ReplyCode {
    /// Every code, in ascending order.
    pub const ALL: [Self; 19] = [
        Self::ReplySuccess,
        Self::ContentTooLarge,
        Self::NoRoute,
        Self::NoConsumers,
        Self::ConnectionForced,
        Self::InvalidPath,
        Self::AccessRefused,
        Self::NotFound,
        Self::ResourceLocked,
        Self::PreconditionFailed,
        Self::FrameError,
        Self::SyntaxError,
        Self::CommandInvalid,
        Self::ChannelError,
        Self::UnexpectedFrame,
        Self::ResourceError,
        Self::NotAllowed,
        Self::NotImplemented,
        Self::InternalError,
    ];

    /// The number on the wire.
    #[must_use]
    pub fn code(self) -> u16 {
        self as u16
    }

    /// The name as it stands in reply texts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ReplySuccess => "REPLY_SUCCESS",
            Self::ContentTooLarge => "CONTENT_TOO_LARGE",
            Self::NoRoute => "NO_ROUTE",
            Self::NoConsumers => "NO_CONSUMERS",
            Self::ConnectionForced => "CONNECTION_FORCED",
            Self::InvalidPath => "INVALID_PATH",
            Self::AccessRefused => "ACCESS_REFUSED",
            Self::NotFound => "NOT_FOUND",
            Self::ResourceLocked => "RESOURCE_LOCKED",
            Self::PreconditionFailed => "PRECONDITION_FAILED",
            Self::FrameError => "FRAME_ERROR",
            Self::SyntaxError => "SYNTAX_ERROR",
            Self::CommandInvalid => "COMMAND_INVALID",
            Self::ChannelError => "CHANNEL_ERROR",
            Self::UnexpectedFrame => "UNEXPECTED_FRAME",
            Self::ResourceError => "RESOURCE_ERROR",
            Self::NotAllowed => "NOT_ALLOWED",
            Self::NotImplemented => "NOT_IMPLEMENTED",
            Self::InternalError => "INTERNAL_ERROR",
        }
    }

    /// True if this code closes the connection. The others close the channel, or the connection when
    /// they are raised on channel 0.
    #[must_use]
    pub fn is_connection_error(self) -> bool {
        match self {
            Self::ConnectionForced
            | Self::InvalidPath
            | Self::FrameError
            | Self::SyntaxError
            | Self::CommandInvalid
            | Self::ChannelError
            | Self::UnexpectedFrame
            | Self::ResourceError
            | Self::NotAllowed
            | Self::NotImplemented
            | Self::InternalError => true,
            Self::ReplySuccess
            | Self::ContentTooLarge
            | Self::NoRoute
            | Self::NoConsumers
            | Self::AccessRefused
            | Self::NotFound
            | Self::ResourceLocked
            | Self::PreconditionFailed => false,
        }
    }

    /// The reply text: `<NAME> - <explanation>`, at most 255 bytes of UTF-8; a longer one is cut
    /// between two characters and ends in `...`. Without an explanation the text is the name alone.
    ///
    /// RabbitMQ 4.3.6 cuts an ASCII text in the same place: 252 bytes and `...`, observed. RabbitMQ
    /// counts characters, which fails for other texts: one of at most 255 characters and more than 255 bytes closes
    /// the connection with 541.
    // COMPAT: reply text length: cut by bytes; RabbitMQ counts characters and fails on others.
    #[must_use]
    pub fn text(self, explanation: &str) -> String {
        let mut text = self.name().to_owned();
        if !explanation.is_empty() {
            text.push_str(" - ");
            text.push_str(explanation);
        }
        if text.len() > REPLY_TEXT_BYTES_MAX {
            text.truncate(text.floor_char_boundary(REPLY_TEXT_BYTES_MAX - ELLIPSIS.len()));
            text.push_str(ELLIPSIS);
        }
        text
    }
}

impl fmt::Display for ReplyCode {
    /// Prints number and name: `404 NOT_FOUND`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code(), self.name())
    }
}
