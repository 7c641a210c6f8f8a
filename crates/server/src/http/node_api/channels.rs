//! Channels on behalf of users.

use std::sync::Arc;

use broker::access::Access;
use management::{Caller, Change, Channel, ChannelRefused};

use crate::auth::ctl_token::full_access;
use crate::node::Node;
use crate::vhost::internal_channel::OwnChannel;

impl management::Channels for Node {
    fn channel(
        &self,
        caller: &Caller,
        vhost: &str,
    ) -> Change<'_, Result<Box<dyn Channel>, ChannelRefused>> {
        let cell = self.vhosts.get(vhost);
        let access = self.access(caller, vhost);
        Box::pin(async move {
            let cell = cell.ok_or(ChannelRefused::NoSuchVhost)?;
            let access = access.ok_or(ChannelRefused::NoPermissions)?;
            let channel = OwnChannel::open(cell, access).await;
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
