//! Barriers: what a vhost had confirmed at a moment, for a backup of a node that follows it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use storage::EntryIndex;
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use crate::limits::{BARRIER_TIMEOUT, LEADER_CHECK_INTERVAL, LEADERS_WAIT};
use crate::peers::HttpPeers;
use crate::peers::questions::{barrier_index, barrier_request};
use crate::replicas::Replicator;
use crate::vhost::{VhostHandle, Vhosts};

/// The index of an entry behind everything that a vhost had confirmed before the call. None if this node does not lead it, or
/// no majority answers.
pub(crate) async fn barrier_here(
    replicator: &Replicator,
    handle: &VhostHandle,
) -> Option<EntryIndex> {
    timeout(BARRIER_TIMEOUT, replicator.barrier(handle.id())).await.ok().flatten()
}

/// The leaders of all vhosts, for a backup of this node.
#[derive(Debug)]
pub(crate) struct Barriers {
    vhosts: Arc<Vhosts>,
    replicator: Arc<Replicator>,
    peers: Arc<HttpPeers>,
    runtime: Handle,
    /// Time for which vhosts without a leader are waited for, all together.
    wait: Duration,
}

impl Barriers {
    /// Asks the leaders on behalf of a thread that is not one of `runtime`.
    pub(crate) fn new(
        vhosts: &Arc<Vhosts>,
        replicator: &Arc<Replicator>,
        peers: &Arc<HttpPeers>,
        runtime: Handle,
    ) -> Self {
        let (vhosts, replicator) = (Arc::clone(vhosts), Arc::clone(replicator));
        Self { vhosts, replicator, peers: Arc::clone(peers), runtime, wait: LEADERS_WAIT }
    }

    /// The index of an entry behind everything that a vhost had confirmed before the call. Waits for its leader.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub(crate) fn of(&mut self, vhost: &str) -> Result<EntryIndex, String> {
        let (runtime, began) = (self.runtime.clone(), Instant::now());
        let asked = runtime.block_on(async {
            loop {
                match self.ask(vhost).await {
                    Err(_) if began.elapsed() < self.wait && self.vhosts.get(vhost).is_some() => {
                        sleep(LEADER_CHECK_INTERVAL).await;
                    }
                    answer => return answer,
                }
            }
        });
        if asked.is_err() {
            self.wait = self.wait.saturating_sub(began.elapsed());
        }
        asked
    }

    async fn ask(&self, vhost: &str) -> Result<EntryIndex, String> {
        let handle = self.vhosts.get(vhost).ok_or("the vhost is deleted")?;
        if handle.is_led_here() {
            let index = barrier_here(&self.replicator, &handle).await;
            return index.ok_or_else(|| "no majority of the nodes answers".to_owned());
        }
        let leader = handle.leader().ok_or("the vhost has no leader")?;
        let answer = self.peers.answer(&leader, barrier_request(vhost), BARRIER_TIMEOUT).await?;
        barrier_index(answer).await.map(EntryIndex)
    }
}
