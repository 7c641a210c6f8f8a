//! What users do in vhosts over HTTP: the same as over AMQP, on a channel that lives as long as their
//! request.

use broker::refusal::Refusal;
use broker::{Command, Outgoing};

use super::Change;
use crate::Caller;

/// Channels on behalf of users.
pub trait Channels {
    /// Opens a channel in `vhost` with what `caller` may do there. While much waits for the disk, it
    /// takes a while.
    fn channel(
        &self,
        caller: &Caller,
        vhost: &str,
    ) -> Change<'_, Result<Box<dyn Channel>, ChannelRefused>>;

    /// Bytes of the largest message body; larger ones are refused.
    fn message_size_max(&self) -> u64;
}

/// Why there is no channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChannelRefused {
    /// There is no such vhost.
    NoSuchVhost,
    /// The user has no permissions in it.
    NoPermissions,
}

/// A channel. What it holds when it is dropped goes back to where it was.
pub trait Channel: Send {
    /// Performs a command; what comes of it is told by `answer`.
    fn apply(&mut self, command: Command<'_>);

    /// The next thing that the channel is told: an answer when everything that it tells of is on the
    /// disk, a confirm, a returned message. A refusal closes the channel.
    fn answer(&mut self) -> Change<'_, Result<Outgoing, Refusal>>;

    /// Closes the channel; all that was done on it is on the disk then.
    fn close(self: Box<Self>) -> Change<'static, ()>;
}
