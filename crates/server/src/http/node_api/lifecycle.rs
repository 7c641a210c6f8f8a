//! Stopping, suspending and resuming the node.

use management::{ChangeFuture, Lifecycle, LifecycleAction, LifecycleError};

use super::change;
use crate::node::Node;
use crate::node::lifecycle::ExitReason;

impl Lifecycle for Node {
    fn act(&self, action: LifecycleAction) -> ChangeFuture<'_, Result<(), LifecycleError>> {
        if let LifecycleAction::Drain | LifecycleAction::Revive = action {
            let is_drained = action == LifecycleAction::Drain;
            return Box::pin(async move {
                let followed = self.lifecycle.listeners.set_suspended(is_drained).await;
                self.drain_leads(is_drained).await;
                followed.map_err(LifecycleError::Failed)
            });
        }
        if let LifecycleAction::SuspendListeners | LifecycleAction::ResumeListeners = action {
            let are_suspended = action == LifecycleAction::SuspendListeners;
            return Box::pin(async move {
                let followed = self.lifecycle.listeners.set_suspended(are_suspended).await;
                followed.map_err(LifecycleError::Failed)
            });
        }
        if let LifecycleAction::JoinCluster(seed) = action {
            return Box::pin(async move {
                self.joiner.join(&seed, self.cluster.as_ref()).await?;
                self.lifecycle.shutdown.request(ExitReason::Restart);
                Ok(())
            });
        }
        if let LifecycleAction::StandAlone = action {
            return change(move || self.stand_alone());
        }
        let result = match action {
            LifecycleAction::Stop => {
                self.lifecycle.shutdown.request(ExitReason::Stop);
                Ok(())
            }
            LifecycleAction::StopApp => {
                self.lifecycle.shutdown.request(ExitReason::StopApp);
                Ok(())
            }
            LifecycleAction::StartApp
            | LifecycleAction::Drain
            | LifecycleAction::Revive
            | LifecycleAction::SuspendListeners
            | LifecycleAction::ResumeListeners
            | LifecycleAction::JoinCluster(_)
            | LifecycleAction::StandAlone => Ok(()),
            LifecycleAction::Reset | LifecycleAction::ForceReset => {
                Err(LifecycleError::MustBeStopped)
            }
        };
        Box::pin(std::future::ready(result))
    }
}
