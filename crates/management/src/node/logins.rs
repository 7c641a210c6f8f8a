//! Logins.

use std::net::IpAddr;
use std::pin::Pin;

use crate::{Caller, Credentials, LoginRefused};

/// Who logs in, once it is known.
pub type Login<'a> = Pin<Box<dyn Future<Output = Result<Caller, LoginRefused>> + Send + 'a>>;

/// Who may use the API.
pub trait Logins {
    /// Checks a login from `peer`.
    fn login(&self, credentials: Credentials, peer: IpAddr) -> Login<'_>;
}
