//! Counts of login attempts.

/// The protocol of a login.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Protocol {
    /// HTTP: one login per request.
    Http,
    /// AMQP 0-9-1: one login per connection.
    Amqp091,
}

impl Protocol {
    /// The protocol's name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Amqp091 => "amqp091",
        }
    }
}

/// Login attempts over one protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoginAttempts {
    /// The protocol.
    pub protocol: Protocol,
    /// Number of accepted logins.
    pub succeeded: u64,
    /// Number of refused logins.
    pub failed: u64,
}
