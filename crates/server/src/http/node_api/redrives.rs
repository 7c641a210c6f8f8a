//! Dead messages that are sent back.

use management::{
    Caller, Change, RedriveDryRun, RedriveJob, RedriveRefused, RedriveRequest, Redrives,
};

use crate::node::Node;
use crate::redrive::dry_run;
use crate::vhost::internal_channel::InternalChannel;

impl Redrives for Node {
    fn redrive(
        &self,
        caller: &Caller,
        (vhost, queue): (&str, &str),
        request: RedriveRequest,
    ) -> Change<'_, Result<RedriveJob, RedriveRefused>> {
        let (handle, access) = (self.vhosts.get(vhost), self.access(caller, vhost));
        let queue = queue.to_owned();
        Box::pin(async move {
            let handle = handle.ok_or(RedriveRefused::NoSuchVhost)?;
            let access = access.ok_or(RedriveRefused::NoPermissions)?;
            let channel =
                InternalChannel::open(handle, access).await.map_err(RedriveRefused::Refused)?;
            self.redrives.begin(channel, &queue, request, self.clock)
        })
    }

    fn redrive_dry_run(
        &self,
        caller: &Caller,
        (vhost, queue): (&str, &str),
        request: RedriveRequest,
    ) -> Change<'_, Result<RedriveDryRun, RedriveRefused>> {
        let (handle, access) = (self.vhosts.get(vhost), self.access(caller, vhost));
        let queue = queue.to_owned();
        Box::pin(async move {
            let handle = handle.ok_or(RedriveRefused::NoSuchVhost)?;
            let access = access.ok_or(RedriveRefused::NoPermissions)?;
            dry_run(&handle, &queue, request, &access).await
        })
    }

    fn redrives(&self) -> Vec<RedriveJob> {
        self.redrives.all()
    }

    fn cancel_redrive(&self, id: u64) -> bool {
        self.redrives.cancel(id)
    }
}
