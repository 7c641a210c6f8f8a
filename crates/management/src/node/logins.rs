//! Logins.

use std::net::IpAddr;
use std::pin::Pin;

use crate::{Caller, Credentials, LoginRefused};

/// Who logs in, once it is known.
pub type Login<'a> = Pin<Box<dyn Future<Output = Result<Caller, LoginRefused>> + Send + 'a>>;

/// What somebody logs in over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Protocol {
    /// HTTP, with every request.
    Http,
    /// AMQP 0-9-1, with every connection.
    Amqp091,
}

impl Protocol {
    /// Its name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Amqp091 => "amqp091",
        }
    }
}

/// A wait.
pub type Delay<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// How often somebody has tried to log in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoginAttempts {
    /// Over what.
    pub protocol: Protocol,
    /// How often he was let in.
    pub succeeded: u64,
    /// How often he was refused.
    pub failed: u64,
}

/// Who may use the API.
pub trait Logins {
    /// Checks a login from `peer`.
    fn login(&self, credentials: Credentials, peer: IpAddr) -> Login<'_>;

    /// Ends when the answer to a refused login of `user` from `peer` may go out: guesses are answered late
    /// while others wait.
    fn hold_back(&self, _user: String, _peer: IpAddr) -> Delay<'_> {
        Box::pin(std::future::ready(()))
    }
}

/// How often somebody has tried to log in.
pub trait LoginCounts {
    /// How often somebody has tried since the start or since it was forgotten, by protocol.
    fn login_attempts(&self) -> Vec<LoginAttempts>;

    /// Counts from zero.
    fn forget_login_attempts(&self);
}
