//! Changes on behalf of whoever asks: may he enter the vhost, and what comes of a command on a channel
//! of his.

use std::sync::Arc;

use amqp::limits::SHORT_STRING_BYTES_MAX;
use broker::refusal::Refusal;
use broker::{Command, Outgoing};

use crate::http::answer::ApiError;
use crate::http::extract::Shared;
use crate::node::{Caller, Channel, ChannelError};

/// A vhost that somebody wants to change.
pub(crate) struct Entry {
    node: Shared,
    caller: Arc<Caller>,
    pub(crate) vhost: String,
}

impl Entry {
    /// Lets the caller into a vhost to make something there.
    pub(crate) fn to_make(
        node: Shared,
        caller: Arc<Caller>,
        vhost: String,
    ) -> Result<Self, ApiError> {
        Self::new(node, caller, vhost, ApiError::no_such_vhost)
    }

    /// Lets the caller into a vhost to remove something that is there.
    pub(crate) fn to_remove(
        node: Shared,
        caller: Arc<Caller>,
        vhost: String,
    ) -> Result<Self, ApiError> {
        Self::new(node, caller, vhost, ApiError::not_found)
    }

    fn new(
        node: Shared,
        caller: Arc<Caller>,
        vhost: String,
        unknown: fn() -> ApiError,
    ) -> Result<Self, ApiError> {
        if !node.vhost_names().contains(&vhost) {
            return Err(unknown());
        }
        match caller.can_enter(&vhost) {
            true => Ok(Self { node, caller, vhost }),
            false => Err(ApiError::no_entry()),
        }
    }

    /// The node.
    pub(crate) fn node(&self) -> &Shared {
        &self.node
    }

    /// A channel with what the caller may do.
    pub(crate) async fn channel(&self) -> Result<Box<dyn Channel>, ApiError> {
        let channel = self.node.channel(&self.caller, &self.vhost).await;
        channel.map_err(|refused| match refused {
            ChannelError::NoSuchVhost => ApiError::no_such_vhost(),
            ChannelError::NoPermissions => ApiError::access_refused(),
        })
    }

    /// Performs one command that is answered.
    pub(crate) async fn perform(&self, command: Command<'_>) -> Result<(), ApiError> {
        call(&mut *self.channel().await?, command).await?;
        Ok(())
    }
}

/// The answer to a command.
pub(crate) async fn call(
    channel: &mut dyn Channel,
    command: Command<'_>,
) -> Result<Outgoing, Refusal> {
    channel.apply(command);
    channel.answer().await
}

/// A name that AMQP can carry.
pub(crate) fn short<'a>(what: &str, name: &'a str) -> Result<&'a str, ApiError> {
    let bytes = name.len();
    if bytes <= SHORT_STRING_BYTES_MAX {
        return Ok(name);
    }
    let reason = format!("{what} should be less than 255 bytes, actually was {bytes}\n");
    Err(ApiError::bad_request(reason))
}
