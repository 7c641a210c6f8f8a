//! Stopping, suspending and resuming the node.

use super::change;
use crate::node::Node;
use crate::node::lifecycle::ExitReason;
use crate::requests::{ChangeFuture, Lifecycle, LifecycleAction, LifecycleError};

impl Lifecycle for Node {
    fn act(&self, action: LifecycleAction) -> ChangeFuture<'_, Result<(), LifecycleError>> {
        let result = match action {
            LifecycleAction::Drain => return Box::pin(self.set_drained(true)),
            LifecycleAction::Revive => return Box::pin(self.set_drained(false)),
            LifecycleAction::SuspendListeners => return Box::pin(self.set_suspended(true)),
            LifecycleAction::ResumeListeners => return Box::pin(self.set_suspended(false)),
            LifecycleAction::JoinCluster(seed) => {
                return Box::pin(async move {
                    self.joiner.join(&seed, self.cluster.as_ref()).await?;
                    self.lifecycle.shutdown.request(ExitReason::Restart);
                    Ok(())
                });
            }
            LifecycleAction::StandAlone => return change(move || self.stand_alone()),
            LifecycleAction::Stop => {
                self.lifecycle.shutdown.request(ExitReason::Stop);
                Ok(())
            }
            LifecycleAction::StopApp => {
                self.lifecycle.shutdown.request(ExitReason::StopApp);
                Ok(())
            }
            LifecycleAction::StartApp => Ok(()),
            LifecycleAction::Reset | LifecycleAction::ForceReset => {
                Err(LifecycleError::MustBeStopped)
            }
        };
        Box::pin(std::future::ready(result))
    }
}

impl Node {
    async fn set_suspended(&self, are_suspended: bool) -> Result<(), LifecycleError> {
        let followed = self.lifecycle.listeners.set_suspended(are_suspended).await;
        followed.map_err(LifecycleError::Failed)
    }

    async fn set_drained(&self, is_drained: bool) -> Result<(), LifecycleError> {
        let followed = self.set_suspended(is_drained).await;
        self.drain_leads(is_drained).await;
        followed
    }
}
