//! A stopped node: no vhost is open and no client is served. Its API accepts only the token of the local
//! administrator, and offers only a few actions.

use std::net::IpAddr;
use std::path::PathBuf;

use crate::auth::ctl_token::CtlToken;
use crate::cluster::joining::joiner::Joiner;
use crate::config::{ClusterOptions, Config};
use crate::disk::{reset, stand_alone};
use crate::node::lifecycle::{ExitReason, ShutdownRequest};
use crate::requests::{Caller, Credentials, LifecycleAction, LifecycleError, LoginRefused};
use crate::start::start_error::StartError;
use crate::start::stopped_member::{LeaveOutcome, StoppedMember};

/// The state of a stopped node.
#[derive(Debug)]
pub struct StoppedNode {
    name: String,
    data_dir: PathBuf,
    pub(crate) token: CtlToken,
    joiner: Joiner,
    cluster: ClusterOptions,
    pub(crate) shutdown: ShutdownRequest,
}

impl StoppedNode {
    /// The stopped node of a configuration.
    ///
    /// # Errors
    /// If the system has no randomness for the token.
    pub(crate) fn new(config: &Config) -> Result<Self, StartError> {
        Ok(Self {
            name: config.full_node_name(),
            data_dir: config.data_dir.clone(),
            token: CtlToken::new()?,
            joiner: Joiner::new(config),
            cluster: config.cluster.clone(),
            shutdown: ShutdownRequest::new(),
        })
    }

    /// Name of the node.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Checks a login from `peer`, with the token of the machine.
    ///
    /// # Errors
    /// [`LoginRefused`]: a stopped node knows no users.
    pub fn login(&self, credentials: &Credentials, peer: IpAddr) -> Result<Caller, LoginRefused> {
        match credentials.is_token {
            true => self.token.login(&credentials.password, peer, Vec::new()),
            false => Err(LoginRefused::Credentials),
        }
    }

    /// Performs the action. An action that ends this API only begins when the future completes, so that
    /// the caller can be answered.
    ///
    /// # Errors
    /// [`LifecycleError`], for the user.
    pub async fn act(&self, action: LifecycleAction) -> Result<(), LifecycleError> {
        match action {
            LifecycleAction::Stop => self.shutdown.request(ExitReason::Stop),
            LifecycleAction::StopApp
            | LifecycleAction::SuspendListeners
            | LifecycleAction::Drain
            | LifecycleAction::Revive
            | LifecycleAction::ResumeListeners => {}
            LifecycleAction::JoinCluster(seed) => {
                self.joiner.join(&seed, None).await?;
                // What the node has is given up at once, as by a reset.
                reset::finish(&self.data_dir).map_err(|error| {
                    LifecycleError::Failed(format!("cannot reset the node: {error}"))
                })?;
            }
            LifecycleAction::StandAlone => {
                if let Some(member) = self.member()?
                    && let Some(name) = member.running_member().await
                {
                    return Err(LifecycleError::Refused(format!(
                        "node '{name}' runs, and this node is a member of its cluster: two clusters would serve the \
                             same vhosts. Stop all other nodes first; they can join this one again with empty disks"
                    )));
                }
                let data_dir = self.data_dir.clone();
                let done = tokio::task::spawn_blocking(move || {
                    stand_alone::begin(&data_dir)?;
                    stand_alone::finish(&data_dir)
                });
                let done = done.await.map_err(|error| LifecycleError::Failed(error.to_string()));
                done??;
            }
            LifecycleAction::StartApp => self.shutdown.request(ExitReason::StartApp),
            LifecycleAction::Reset | LifecycleAction::ForceReset => {
                if action == LifecycleAction::Reset
                    && let Some(member) = self.member()?
                    && let LeaveOutcome::No(reason) = member.leave().await
                {
                    return Err(LifecycleError::Refused(format!(
                        "the node is a member of a cluster, and {reason}. force_reset resets it all the same; the \
                             others list it then until forget_cluster_node"
                    )));
                }
                let data_dir = self.data_dir.clone();
                let done = tokio::task::spawn_blocking(move || reset::reset(&data_dir)).await;
                let failed = |error: &dyn std::fmt::Display| {
                    tracing::error!("cannot reset the node: {error}");
                    LifecycleError::Failed(format!("cannot reset the node: {error}"))
                };
                done.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
                tracing::warn!("node reset: all data removed");
            }
        }
        Ok(())
    }

    /// The node as a member of its cluster; none without one.
    fn member(&self) -> Result<Option<StoppedMember>, LifecycleError> {
        StoppedMember::of(&self.cluster, &self.data_dir)
            .map_err(|error| LifecycleError::Failed(error.to_string()))
    }
}
