//! Responses of a client to the SASL mechanisms PLAIN, AMQPLAIN and RABBIT-CR-DEMO.
//!
//! Only the wire form is decided here; the server checks the password.
//!
//! ```text
//! PLAIN      authorization-identity NUL user NUL password
//! AMQPLAIN   the fields of a table, without its size: LOGIN and PASSWORD
//! CR-DEMO    user; after the challenge "My password is ", then the password
//! ```

use std::fmt;

use crate::table::{TableError, TableRef, Value};

/// The challenge of RABBIT-CR-DEMO, the same for all clients.
pub const CR_DEMO_CHALLENGE: &[u8] = b"Please tell me your password";

/// Text before the password in the answer to [`CR_DEMO_CHALLENGE`].
const CR_DEMO_ANSWER: &[u8] = b"My password is ";

/// Reads the password from the answer to [`CR_DEMO_CHALLENGE`]; `None` if the answer has another form.
pub fn parse_cr_demo(response: &[u8]) -> Option<&[u8]> {
    response.strip_prefix(CR_DEMO_ANSWER)
}

/// Reason for which a response names no user and password. RabbitMQ 4.3.6 drops the connection for any of these
/// instead of refusing the login (observed).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SaslError {
    /// A PLAIN response that is not NUL, user, NUL, password.
    #[error("the PLAIN response is malformed")]
    MalformedPlain,
    /// An AMQPLAIN response that is no table.
    #[error("the AMQPLAIN response is malformed: {0}")]
    MalformedAmqplain(TableError),
    /// An AMQPLAIN response without a string LOGIN or PASSWORD.
    #[error("the AMQPLAIN response lacks LOGIN or PASSWORD")]
    MissingField,
}

/// A user name and a password as they were sent: any bytes, possibly none.
///
/// An empty password is well-formed; the check of the password must refuse it (RabbitMQ 4.3.6:
/// 403 ACCESS_REFUSED, observed).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Credentials<'a> {
    /// The user's name.
    pub user: &'a [u8],
    /// The password.
    pub password: &'a [u8],
}

impl fmt::Debug for Credentials<'_> {
    /// Leaves the password out, because logs print this.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials {{ user: \"{}\", .. }}", self.user.escape_ascii())
    }
}

/// Reads a PLAIN response.
///
/// RabbitMQ 4.3.6 is strict (all observed): the authorization identity must be empty
/// (`guest NUL guest NUL guest` is dropped), and neither a third NUL nor text before the first is
/// allowed. User and password may be empty or not UTF-8; such a login is then refused with 403.
///
/// # Errors
/// [`SaslError::MalformedPlain`].
pub fn parse_plain(response: &[u8]) -> Result<Credentials<'_>, SaslError> {
    let mut parts = response.split(|octet| *octet == 0);
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some([]), Some(user), Some(password), None) => Ok(Credentials { user, password }),
        _ => Err(SaslError::MalformedPlain),
    }
}

/// Reads an AMQPLAIN response.
///
/// RabbitMQ 4.3.6, observed: other fields may stand beside LOGIN and PASSWORD, in any order; of
/// several LOGIN the first counts; the names are upper case; the values are long strings or binaries;
/// the table stands without its size.
///
/// # Errors
/// [`SaslError::MalformedAmqplain`] or [`SaslError::MissingField`].
pub fn parse_amqplain(response: &[u8]) -> Result<Credentials<'_>, SaslError> {
    let table = TableRef::from_bytes(response).map_err(SaslError::MalformedAmqplain)?;
    let text = |key| match table.get(key) {
        Some(Value::LongStr(bytes) | Value::Binary(bytes)) => Ok(bytes),
        _ => Err(SaslError::MissingField),
    };
    Ok(Credentials { user: text("LOGIN")?, password: text("PASSWORD")? })
}
