//! Refusals of brokers.

/// A reply code and the text that comes with it.
#[derive(Debug, PartialEq)]
pub struct Refusal {
    /// The reply code.
    pub code: u16,
    /// The reply text.
    pub text: String,
}

impl Refusal {
    /// A refusal as a client reports it.
    pub fn new(code: u16, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// There is no such queue.
    pub fn missing(queue: &str) -> Self {
        Self::new(404, format!("NOT_FOUND - no queue '{queue}' in vhost '/'"))
    }

    /// The queue has another `x-message-ttl`.
    pub fn inequivalent(queue: &str) -> Self {
        Self::new(
            406,
            format!(
                "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue '{queue}' in vhost '/': \
                 received '2000' but current is '1000'"
            ),
        )
    }

    /// The message has the expiration `abc`.
    pub fn expiration() -> Self {
        Self::new(406, "PRECONDITION_FAILED - invalid expiration 'abc': no_integer")
    }

    /// The queue belongs to another connection.
    pub fn locked(queue: &str) -> Self {
        Self::new(
            405,
            format!(
                "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '{queue}' in vhost '/'. It could be \
                 originally declared on another connection or the exclusive property value does not match that of \
                 the original declaration."
            ),
        )
    }

    /// The password is wrong.
    pub fn password() -> Self {
        Self::new(
            403,
            "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see the broker \
             logfile.",
        )
    }

    /// There is no vhost `nope`.
    pub fn vhost() -> Self {
        Self::new(530, "NOT_ALLOWED - vhost nope not found")
    }
}
