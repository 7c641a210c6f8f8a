//! Channels on behalf of users.

use std::sync::Arc;

use broker::access::Access;
use management::{Caller, Change, Channel, ChannelRefused};

use crate::auth::ctl_token::full_access;
use crate::node::Node;
use crate::vhost::internal_channel::InternalChannel;

impl management::Channels for Node {
    fn channel(
        &self,
        caller: &Caller,
        vhost: &str,
    ) -> Change<'_, Result<Box<dyn Channel>, ChannelRefused>> {
        let handle = self.vhosts.get(vhost);
        let access = self.access(caller, vhost);
        Box::pin(async move {
            let handle = handle.ok_or(ChannelRefused::NoSuchVhost)?;
            let access = access.ok_or(ChannelRefused::NoPermissions)?;
            let channel = InternalChannel::open(handle, access).await;
            channel.map_or(Err(ChannelRefused::NoSuchVhost), |channel| Ok(Box::new(channel) as _))
        })
    }

    fn message_size_max(&self) -> u64 {
        self.session_options(false).message_bytes_max
    }
}

impl Node {
    /// What somebody who asks over HTTP may do in a vhost.
    pub(super) fn access(&self, caller: &Caller, vhost: &str) -> Option<Arc<Access>> {
        if caller.is_local_administrator {
            return full_access().ok();
        }
        self.auth.user(&caller.name)?.access(vhost)
    }
}
