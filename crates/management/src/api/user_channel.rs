//! Changes on behalf of a user: access to the vhost, and a channel with the user's permissions.

use std::sync::Arc;

use amqp::limits::SHORT_STRING_BYTES_MAX;
use broker::refusal::Refusal;
use broker::{Command, Outgoing};
use server::InternalChannel;
use server::requests::{Caller, ChannelError};

use crate::http::answer::ApiError;
use crate::http::extract::SharedNode;

/// A vhost that a user is about to change.
pub(crate) struct UserVhost {
    node: SharedNode,
    caller: Arc<Caller>,
    pub(crate) vhost: String,
}

impl UserVhost {
    /// Admits the caller to a vhost to create an object there.
    pub(crate) fn for_create(
        node: SharedNode,
        caller: Arc<Caller>,
        vhost: String,
    ) -> Result<Self, ApiError> {
        Self::new(node, caller, vhost, ApiError::no_such_vhost)
    }

    /// Admits the caller to a vhost to delete or use an existing object.
    pub(crate) fn for_existing(
        node: SharedNode,
        caller: Arc<Caller>,
        vhost: String,
    ) -> Result<Self, ApiError> {
        Self::new(node, caller, vhost, ApiError::not_found)
    }

    fn new(
        node: SharedNode,
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
    pub(crate) fn node(&self) -> &SharedNode {
        &self.node
    }

    /// Opens a channel with the permissions of the caller.
    pub(crate) async fn channel(&self) -> Result<InternalChannel, ApiError> {
        let channel = self.node.channel(&self.caller, &self.vhost).await;
        channel.map_err(|refused| match refused {
            ChannelError::NoSuchVhost => ApiError::no_such_vhost(),
            ChannelError::NoPermissions => ApiError::access_refused(),
            ChannelError::NotLeading => {
                ApiError::unavailable("the leader of the vhost is changing; ask again")
            }
        })
    }

    /// Performs one command and waits for its answer.
    pub(crate) async fn perform(&self, command: Command<'_>) -> Result<(), ApiError> {
        call(&mut self.channel().await?, command).await?;
        Ok(())
    }
}

/// Performs a command on a channel and returns its answer.
pub(crate) async fn call(
    channel: &mut InternalChannel,
    command: Command<'_>,
) -> Result<Outgoing, Refusal> {
    channel.apply(command);
    channel.answer().await
}

/// Checks that a name fits into a short string.
pub(crate) fn short<'a>(what: &str, name: &'a str) -> Result<&'a str, ApiError> {
    let bytes = name.len();
    if bytes <= SHORT_STRING_BYTES_MAX {
        return Ok(name);
    }
    let reason = format!("{what} should be less than 255 bytes, actually was {bytes}\n");
    Err(ApiError::bad_request(reason))
}
