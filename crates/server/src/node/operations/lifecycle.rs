//! Stopping, suspending and resuming the node.

use tokio::task::block_in_place;

use crate::node::Node;
use crate::node::lifecycle::ExitReason;
use crate::requests::{LifecycleAction, LifecycleError};

impl Node {
    /// Performs the action. An action that ends this API only begins when the future completes, so that
    /// the caller can be answered.
    pub async fn act(&self, action: LifecycleAction) -> Result<(), LifecycleError> {
        match action {
            LifecycleAction::Drain => self.set_drained(true).await,
            LifecycleAction::Revive => self.set_drained(false).await,
            LifecycleAction::SuspendListeners => self.set_suspended(true).await,
            LifecycleAction::ResumeListeners => self.set_suspended(false).await,
            LifecycleAction::JoinCluster(seed) => {
                self.joiner.join(&seed, self.cluster.as_ref()).await?;
                self.lifecycle.shutdown.request(ExitReason::Restart);
                Ok(())
            }
            LifecycleAction::StandAlone => block_in_place(|| self.stand_alone()),
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
        }
    }

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
