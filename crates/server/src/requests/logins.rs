//! Authentication of requests.

use std::net::IpAddr;
use std::pin::Pin;

use crate::requests::caller::{Caller, Credentials};

/// Completes with the user once the credentials are checked.
pub type LoginFuture<'a> = Pin<Box<dyn Future<Output = Result<Caller, LoginRefused>> + Send + 'a>>;

/// Completes after a delay.
pub type DelayFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// The reason why a login is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoginRefused {
    /// Unknown user, or wrong password.
    Credentials,
    /// The user may log in from the broker's machine only.
    NotLoopback,
    /// The node cannot check logins now.
    Unavailable,
}

/// Authentication of requests.
pub trait Logins {
    /// Checks a login from `peer`.
    fn login(&self, credentials: Credentials, peer: IpAddr) -> LoginFuture<'_>;

    /// Completes when the answer to a refused login of `user` from `peer` may be sent. A node that delays
    /// guesses overrides this.
    fn hold_back(&self, _user: String, _peer: IpAddr) -> DelayFuture<'_> {
        Box::pin(std::future::ready(()))
    }
}
