//! Refusals: the core's answer to a command that is not allowed or not possible.
//!
//! A refusal is a value: the reply code and RabbitMQ's explanation. The code decides whether the channel or
//! the connection closes; the session turns the refusal into `channel.close` or `connection.close`. The texts
//! are those of RabbitMQ 4.3, because clients and their test suites match on them.

use std::fmt;

use amqp::reply_code::ReplyCode;

/// The refusal of a command.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[error("{}", code.text(explanation))]
pub struct Refusal {
    /// The AMQP reply code, which decides whether the channel or the connection closes.
    pub code: ReplyCode,
    /// RabbitMQ's explanation, without the code's name in front.
    pub explanation: String,
}

impl Refusal {
    /// Creates a refusal with this code and explanation.
    pub fn new(code: ReplyCode, explanation: impl Into<String>) -> Self {
        Self { code, explanation: explanation.into() }
    }

    /// 404 `NOT_FOUND`, closes the channel.
    pub fn not_found(resource: Resource<'_>) -> Self {
        Self::new(ReplyCode::NotFound, format!("no {resource}"))
    }

    /// 403 `ACCESS_REFUSED`, closes the channel.
    pub fn access_refused(explanation: impl Into<String>) -> Self {
        Self::new(ReplyCode::AccessRefused, explanation)
    }

    /// 405 `RESOURCE_LOCKED`, closes the channel.
    pub fn resource_locked(explanation: impl Into<String>) -> Self {
        Self::new(ReplyCode::ResourceLocked, explanation)
    }

    /// 406 `PRECONDITION_FAILED`, closes the channel.
    pub fn precondition_failed(explanation: impl Into<String>) -> Self {
        Self::new(ReplyCode::PreconditionFailed, explanation)
    }

    /// 530 `NOT_ALLOWED`, closes the connection.
    pub fn not_allowed(explanation: impl Into<String>) -> Self {
        Self::new(ReplyCode::NotAllowed, explanation)
    }

    /// 540 `NOT_IMPLEMENTED`, closes the connection.
    pub fn not_implemented(explanation: impl Into<String>) -> Self {
        Self::new(ReplyCode::NotImplemented, explanation)
    }

    /// 506 `RESOURCE_ERROR`, closes the connection.
    pub fn resource_error(explanation: impl Into<String>) -> Self {
        Self::new(ReplyCode::ResourceError, explanation)
    }

    /// 405 `RESOURCE_LOCKED` for an exclusive queue of another connection, or for a changed `exclusive` flag.
    pub fn locked_queue(queue: Resource<'_>) -> Self {
        Self::resource_locked(format!(
            "cannot obtain exclusive access to locked {queue}. It could be originally declared on \
             another connection or the exclusive property value does not match that of the original \
             declaration."
        ))
    }

    /// 406 for an argument that the queue does not accept: `reason` is RabbitMQ's term.
    pub fn invalid_argument(argument: &str, queue: Resource<'_>, reason: &str) -> Self {
        Self::precondition_failed(format!("invalid arg '{argument}' for {queue}: {reason}"))
    }
}

/// A queue or an exchange, formatted as in reply texts: `queue 'Q' in vhost 'V'`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resource<'a> {
    /// The kind of resource.
    pub kind: ResourceKind,
    /// The resource name.
    pub name: &'a str,
    /// The vhost of the resource.
    pub vhost: &'a str,
}

/// A kind of named resource.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ResourceKind {
    /// An exchange.
    Exchange,
    /// A queue.
    Queue,
}

impl fmt::Display for ResourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exchange => "exchange",
            Self::Queue => "queue",
        })
    }
}

impl fmt::Display for Resource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} '{}' in vhost '{}'", self.kind, self.name, self.vhost)
    }
}
