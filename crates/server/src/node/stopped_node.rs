//! A stopped node: no vhost is open and no client is served. Its API accepts only the token of the local
//! administrator, and offers only a few actions.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;

use crate::auth::ctl_token::{self, CtlToken};
use crate::cluster::ClusterError;
use crate::cluster::joiner::Joiner;
use crate::cluster::stopped_member::{LeaveOutcome, StoppedMember};
use crate::config::{ClusterOptions, Config};
use crate::disk::data_dir::DataDir;
use crate::disk::{reset, stand_alone};
use crate::endpoints::Endpoints;
use crate::http::services::HttpServices;
use crate::node::identity::node_name;
use crate::node::lifecycle::{ExitReason, ShutdownRequest};
use crate::node::start_error::StartError;
use crate::requests::{
    ChangeFuture, Credentials, LifecycleAction, LifecycleError, LoginFuture, LoginRefused,
};
use crate::service_state;

/// The state of a stopped node.
#[derive(Debug)]
struct Stopped {
    name: String,
    data_dir: PathBuf,
    token: CtlToken,
    joiner: Joiner,
    cluster: ClusterOptions,
    shutdown: ShutdownRequest,
}

impl crate::requests::Logins for Stopped {
    fn login(&self, credentials: Credentials, peer: IpAddr) -> LoginFuture<'_> {
        let result = match credentials.is_token {
            true => self.token.login(&credentials.password, peer, Vec::new()),
            false => Err(LoginRefused::Credentials),
        };
        Box::pin(std::future::ready(result))
    }
}

impl crate::requests::Lifecycle for Stopped {
    fn act(&self, action: LifecycleAction) -> ChangeFuture<'_, Result<(), LifecycleError>> {
        Box::pin(async move {
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
                    let done =
                        done.await.map_err(|error| LifecycleError::Failed(error.to_string()));
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
        })
    }
}

impl Stopped {
    /// The node as a member of its cluster; none without one.
    fn member(&self) -> Result<Option<StoppedMember>, LifecycleError> {
        StoppedMember::of(&self.cluster, &self.data_dir)
            .map_err(|error| LifecycleError::Failed(error.to_string()))
    }
}

impl crate::requests::StoppedNode for Stopped {
    fn name(&self) -> &str {
        &self.name
    }
}

/// Waits for the next action, or for `interrupted`.
///
/// # Errors
/// [`StartError`], a sentence for the operator.
pub(crate) async fn run(
    config: &Config,
    http: &HttpServices,
    interrupted: impl Future<Output = ()>,
) -> Result<ExitReason, StartError> {
    let _lock = DataDir::open(&config.data_dir)?;
    reset::finish(&config.data_dir).map_err(StartError::Reset)?;
    stand_alone::finish(&config.data_dir).map_err(ClusterError::from)?;
    let endpoints = Endpoints::bind_http(config)?;
    let (listeners, addresses) = (endpoints.shown(), endpoints.in_words());
    let node = Arc::new(Stopped {
        name: node_name(config.node_name.as_deref()),
        data_dir: config.data_dir.clone(),
        token: CtlToken::new()?,
        joiner: Joiner::new(config),
        cluster: config.cluster.clone(),
        shutdown: ShutdownRequest::new(),
    });
    // Published before the first request is served, so that a program that waits for the stop finds the
    // token.
    let url = ctl_token::url(&listeners, config.path_prefix.as_deref());
    let published = node.token.publish(&config.data_dir, url.as_deref(), &node.name);
    let _published = published.map_err(StartError::CtlFile)?;
    let (over, stopping) = watch::channel(false);
    let servers =
        endpoints.serve_http((http.stopped)(Arc::clone(&node) as _), &stopping, &Arc::default())?;
    tracing::info!("stopped: not serving clients; {addresses} waits for start_app");
    service_state::stopped(&format!("stopped; {addresses} waits for start_app"));
    let end = tokio::select! {
        end = node.shutdown.requested() => end,
        () = interrupted => ExitReason::Stop,
    };
    if end == ExitReason::Stop {
        service_state::stopping();
    }
    // The request that ended the wait is answered.
    over.send_replace(true);
    servers.over().await;
    Ok(end)
}
