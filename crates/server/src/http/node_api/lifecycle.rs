//! Stopping, suspending and resuming the node.

use management::{ChangeFuture, Lifecycle, LifecycleAction, LifecycleError};

use crate::node::Node;
use crate::node::lifecycle::ExitReason;

impl Lifecycle for Node {
    fn act(&self, action: LifecycleAction) -> ChangeFuture<'_, Result<(), LifecycleError>> {
        let result = match action {
            LifecycleAction::Stop => {
                self.lifecycle.shutdown.request(ExitReason::Stop);
                Ok(())
            }
            LifecycleAction::StopApp => {
                self.lifecycle.shutdown.request(ExitReason::StopApp);
                Ok(())
            }
            LifecycleAction::StartApp => Ok(()),
            LifecycleAction::Reset => Err(LifecycleError::MustBeStopped),
            LifecycleAction::SuspendListeners => {
                self.lifecycle.listeners_suspended.send_replace(true);
                Ok(())
            }
            LifecycleAction::ResumeListeners => {
                self.lifecycle.listeners_suspended.send_replace(false);
                Ok(())
            }
        };
        Box::pin(std::future::ready(result))
    }
}
