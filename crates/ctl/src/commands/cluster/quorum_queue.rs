//! The quorum queue that a command of `rabbitmq-queues` names.

use serde_json::Value;

use crate::command::Call;
use crate::failure::{DATA, Failure, UNAVAILABLE};
use crate::http::path;

/// A queue, whose first word a command has, in the vhost of the options.
pub(crate) struct QuorumQueue(Value);

impl QuorumQueue {
    /// The queue.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn named(call: &Call<'_>) -> Result<Self, Failure> {
        let (vhost, name) = (call.vhost(), call.word(0));
        let found = call.node.api.find(&path(&["queues", vhost, name]))?;
        found.map(Self).ok_or_else(|| Self::missing(vhost, name))
    }

    /// Checks that it is a quorum queue.
    ///
    /// # Errors
    /// That of `other`, for the type of another queue.
    pub(crate) fn check(&self, other: &dyn Fn(&str) -> Failure) -> Result<(), Failure> {
        match self.0.get("type").and_then(Value::as_str) {
            Some("quorum") => Ok(()),
            kind => Err(other(kind.unwrap_or_default())),
        }
    }

    /// The failure of a command for a queue that does not exist.
    pub(crate) fn missing(vhost: &str, name: &str) -> Failure {
        Failure::plain(DATA, format!("queue '{name}' was not found in virtual host '{vhost}'"))
    }
}

/// The failure of a command for a queue of another type.
pub(in crate::commands) fn unsupported(kind: &str) -> Failure {
    Failure::error(UNAVAILABLE, format!("{{:unsupported, :rabbit_{kind}_queue}}"))
}
