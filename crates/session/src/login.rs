//! Login mechanisms, and the credentials that a client presents.

/// Mechanism of clients with a verified certificate; the server takes the user from the certificate.
pub const EXTERNAL: &str = "EXTERNAL";

/// Mechanism of clients without a name; the configuration of the server names the user.
///
/// COMPAT: login mechanisms: ANONYMOUS is off unless it is configured; RabbitMQ 4 offers it by default.
pub const ANONYMOUS: &str = "ANONYMOUS";

/// Mechanism in two steps: first the user, then the password as the answer to a challenge.
pub(crate) const CR_DEMO: &str = "RABBIT-CR-DEMO";

/// Names of all mechanisms.
pub const MECHANISMS: [&str; 5] = ["AMQPLAIN", ANONYMOUS, EXTERNAL, "PLAIN", CR_DEMO];

/// Credentials of a client.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Name of the user.
    pub user: String,
    /// Password as it was sent; empty with [`EXTERNAL`] and [`ANONYMOUS`].
    pub password: Vec<u8>,
    /// Name of the mechanism.
    pub mechanism: &'static str,
}

impl std::fmt::Debug for Credentials {
    /// Leaves the password out, because logs print this.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} by {}", self.user, self.mechanism)
    }
}
