//! The reason why a change is not made.

use std::fmt;

/// The reason why a change was not made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChangeError {
    /// No user has this name.
    NoSuchUser,
    /// No vhost has this name.
    NoSuchVhost,
    /// No exchange has this name.
    NoSuchExchange,
    /// The vhost of this name is protected from deletion.
    Protected(String),
    /// The request is invalid; a sentence for the user.
    Invalid(String),
    /// The node cannot make the change now; a sentence for the user.
    Unable(String),
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchUser => f.write_str("there is no such user"),
            Self::NoSuchVhost => f.write_str("there is no such vhost"),
            Self::NoSuchExchange => f.write_str("there is no such exchange"),
            Self::Protected(vhost) => write!(f, "vhost '{vhost}' is protected from deletion"),
            Self::Invalid(reason) | Self::Unable(reason) => f.write_str(reason),
        }
    }
}
