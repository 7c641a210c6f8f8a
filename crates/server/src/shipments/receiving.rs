//! The receiving side: replicas of this node that are rebuilt from the files of their leader.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use replication::MemberId;
use storage::{EntryIndex, HardState, Installation, OpenError, RealDirectory, ShipmentPlan, Term};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;

use super::directories::{Old, incoming_path, remove, resume, take_over};
use super::message::{Message, invalid, read, write};
use super::sending::in_time;
use super::status::{Rebuild, ShipmentCounts, UnderWay};
use crate::cluster::joining::discovery::WaitLog;
use crate::cluster::{Links, Purpose};
use crate::disk::private_files;
use crate::disk::vhost_files::{VhostId, replica_path};
use crate::limits::{EXIT_DISK, SHIPMENT_PREPARE_TIMEOUT, SHIPMENT_RETRY_INTERVAL};
use crate::replicas::{RebuildQueue, RebuildRequest, ReplicaRegistry, Replicator, ShipmentNeed};
use crate::snapshot::replication::RebuildSnapshot;

/// Rebuilds replicas of this node, one at a time, on a thread of its own.
#[derive(Debug)]
pub(crate) struct Receiver {
    data_dir: PathBuf,
    replicator: Arc<Replicator>,
    links: Arc<Links>,
    counts: Arc<ShipmentCounts>,
}

/// The reason why no shipment has come.
#[derive(thiserror::Error, Debug)]
enum Failure {
    #[error("{reason}")]
    Refused { leader: Option<replication::NodeId>, reason: String },
    #[error("{0}")]
    Cut(#[from] io::Error),
    #[error("{0}")]
    Install(#[from] OpenError),
    #[error("{0}")]
    Open(String),
}

/// Files that have arrived, and the member that they make.
#[derive(Debug)]
struct Arrived {
    vhost: VhostId,
    need: ShipmentNeed,
    installation: Installation<RealDirectory>,
    member: MemberId,
    state: HardState,
}

/// Checks that a lost replica may become this member: not one that the node had before it was chosen again.
fn check_member(
    registry: &dyn ReplicaRegistry,
    vhost: VhostId,
    need: ShipmentNeed,
    member: MemberId,
) -> Result<(), String> {
    match need {
        ShipmentNeed::Replacement if !registry.may_become(vhost, member) => {
            Err(format!("the leader does not know yet that this node is no more {member}"))
        }
        ShipmentNeed::Replacement | ShipmentNeed::Behind => Ok(()),
    }
}

/// The octets of a plan that are there if these are the next ones: files come in order.
fn arrived_bytes(plan: &ShipmentPlan, next: Option<(u64, u64)>) -> u64 {
    let before = plan.files.iter().take_while(|(id, _)| next.is_none_or(|(file, _)| *id != file));
    before.map(|(_, bytes)| bytes).sum::<u64>() + next.map_or(0, |(_, offset)| offset)
}

impl Receiver {
    pub(super) fn new(
        data_dir: PathBuf,
        replicator: Arc<Replicator>,
        links: Arc<Links>,
        counts: Arc<ShipmentCounts>,
    ) -> Self {
        Self { data_dir, replicator, links, counts }
    }

    /// Makes the thread end.
    pub(super) fn stop(&self) {
        self.queue().stop();
    }

    fn queue(&self) -> &RebuildQueue {
        self.replicator.rebuilds()
    }

    /// The thread: takes one replica after the other until the node stops.
    pub(super) fn run(&self, runtime: &Handle) {
        let (mut last, mut log, began) = (None, WaitLog::default(), Instant::now());
        while let Some((vhost, wanted)) = self.queue().next(last) {
            last = Some(vhost);
            let Some(name) = self.replicator.registry().name_of(vhost) else { continue };
            let rebuilt = runtime.block_on(self.rebuild(vhost, &name, wanted));
            if let Err(failure) = rebuilt {
                let reason = format!("{name}: {failure}");
                if log.is_due(&reason, began.elapsed()) {
                    tracing::warn!(vhost = name, "the replica is not rebuilt yet: {failure}");
                }
                self.queue().want(vhost, wanted.need, wanted.leader);
                self.queue().pause(SHIPMENT_RETRY_INTERVAL);
            }
        }
    }

    /// Asks the nodes in turn, the likely leader first.
    async fn rebuild(
        &self,
        vhost: VhostId,
        name: &str,
        wanted: RebuildRequest,
    ) -> Result<(), Failure> {
        let nodes = self.replicator.nodes();
        let mut asked = Vec::new();
        let mut next: Vec<replication::NodeId> = nodes.others().collect();
        next.extend(self.replicator.leader_of(vhost));
        next.extend(wanted.leader);
        let mut why = None;
        while let Some(node) = next.pop() {
            if asked.contains(&node) || node == nodes.me {
                continue;
            }
            asked.push(node);
            match self.fetch(vhost, name, wanted.need, node).await {
                Ok(()) => return Ok(()),
                Err(failure) => {
                    if let Failure::Refused { leader: Some(leader), .. } = failure {
                        next.push(leader);
                    }
                    why = Some(failure);
                }
            }
        }
        Err(why.unwrap_or_else(|| Failure::Open("there is no other node".to_owned())))
    }

    /// Fetches the files from a node, and puts them in the place of the replica.
    async fn fetch(
        &self,
        vhost: VhostId,
        name: &str,
        need: ShipmentNeed,
        node: replication::NodeId,
    ) -> Result<(), Failure> {
        let of_link = crate::membership::ids::NodeId(node.get());
        let dialed = self.links.dial(of_link, Purpose::Shipment).await;
        let mut stream = dialed.map_err(|error| Failure::Cut(io::Error::other(error)))?;
        in_time(write(&mut stream, &Message::Ask { vhost: vhost.0, need })).await?;
        let answer = tokio::time::timeout(2 * SHIPMENT_PREPARE_TIMEOUT, read(&mut stream)).await;
        let (member, state, plan) = match answer.map_err(io::Error::from)?? {
            Message::Plan { member, state, plan } => (member, state, plan),
            Message::Refused { leader, reason } => {
                return Err(Failure::Refused { leader: replication::NodeId::new(leader), reason });
            }
            Message::Ask { .. }
            | Message::From { .. }
            | Message::Chunk { .. }
            | Message::End
            | Message::Installed => return Err(invalid("a plan was expected").into()),
        };
        if member.node() != self.replicator.nodes().me {
            return Err(invalid("the plan is for another node").into());
        }
        let registry = self.replicator.registry();
        let check_member = || check_member(registry, vhost, need, member).map_err(Failure::Open);
        check_member()?;
        let leader = self.replicator.nodes().name_of(node).unwrap_or_default();
        let (files, index) = (plan.files.len(), plan.index.0);
        tracing::info!(vhost = name, %leader, %member, files, index, "the replica is being rebuilt from its leader");
        let installation = self.receive(vhost, &mut stream, &plan).await?;
        check_member()?;
        if !self.end_replica(vhost, need, (plan.index, plan.term)) {
            tracing::info!(vhost = name, %leader, index, "the replica is not behind the files of its leader any more");
            remove(&incoming_path(&self.data_dir, vhost))?;
            // If it still lacks entries, the leader offers files again.
            return Ok(());
        }
        // The replica that was wanted until now is the one that comes.
        self.queue().forget(vhost);
        let arrived = Arrived { vhost, need, installation, member, state };
        self.put_in_place(arrived, name)?;
        tracing::info!(vhost = name, %leader, %member, index, "the replica is rebuilt");
        // The leader finds out by itself, too.
        let _ = in_time(write(&mut stream, &Message::Installed)).await;
        Ok(())
    }

    /// Puts files that have arrived in the place of the replica, which has ended. The one that was there goes on if that fails.
    fn put_in_place(&self, arrived: Arrived, name: &str) -> Result<(), Failure> {
        let text = |error: io::Error| error.to_string();
        let Arrived { vhost, need, member, .. } = arrived;
        let registry = self.replicator.registry();
        let replaced = self.complete(arrived).and_then(|old| {
            let opened = registry.open_installed(vhost, &mut || {
                // The node may have been chosen again while the files were on their way.
                if let Err(why) = check_member(registry, vhost, need, member) {
                    remove(&incoming_path(&self.data_dir, vhost)).map_err(text)?;
                    return Err(why);
                }
                take_over(&self.data_dir, vhost, old).map_err(text)
            });
            opened.map_err(Failure::Open)
        });
        if replaced.is_err()
            && let Err(problem) = registry.open_installed(vhost, &mut || {
                // The files may be in its place already.
                resume(&self.data_dir, vhost).map_err(text)
            })
        {
            let vhost = name;
            tracing::error!(vhost, "the replica cannot be opened anew: {problem}; the broker ends");
            std::process::exit(EXIT_DISK);
        }
        replaced
    }

    /// Receives the files of a plan, or the rest of them.
    async fn receive(
        &self,
        vhost: VhostId,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
        plan: &ShipmentPlan,
    ) -> Result<Installation<RealDirectory>, Failure> {
        let _under_way = UnderWay::new(&self.counts.receiving);
        let path = incoming_path(&self.data_dir, vhost);
        private_files::create_dirs(&path)?;
        if storage::has_log(&RealDirectory::open(&path)?)? {
            // It was complete, and did not become the replica.
            remove(&path)?;
            private_files::create_dirs(&path)?;
        }
        let directory = RealDirectory::open(&path)?;
        let mut installation = Installation::begin(directory, vhost.0, plan)?;
        let files = RebuildSnapshot {
            received_bytes: arrived_bytes(plan, installation.next()),
            total_bytes: plan.files.iter().map(|(_, bytes)| bytes).sum(),
        };
        let _rebuild = Rebuild::begin(&self.counts, vhost, files);
        match installation.next() {
            Some((file, offset)) => {
                in_time(write(stream, &Message::From { file, offset })).await?;
            }
            None => in_time(write(stream, &Message::End)).await?,
        }
        loop {
            match in_time(read(stream)).await? {
                Message::Chunk { file, offset, bytes } => {
                    if installation.next() != Some((file, offset)) {
                        return Err(invalid("octets come in another order").into());
                    }
                    installation.write(&bytes)?;
                    self.counts.receive(bytes.len() as u64);
                }
                Message::End => return Ok(installation),
                Message::Ask { .. }
                | Message::Refused { .. }
                | Message::Plan { .. }
                | Message::From { .. }
                | Message::Installed => return Err(invalid("octets were expected").into()),
            }
            if self.queue().is_stopping() {
                return Err(invalid("the node stops").into());
            }
        }
    }

    /// Ends the replica that files up to an entry are to replace. False if it goes on: entries that it has acknowledged
    /// must not be replaced by files without them.
    fn end_replica(&self, vhost: VhostId, need: ShipmentNeed, end: (EntryIndex, Term)) -> bool {
        match need {
            ShipmentNeed::Replacement => {
                self.replicator.end_replica(vhost);
                true
            }
            ShipmentNeed::Behind => self.replicator.end_replica_behind(vhost, end),
        }
    }

    /// Checks what has arrived and makes it the replica of a member. Returns the fate of the replica that has ended.
    fn complete(&self, arrived: Arrived) -> Result<Old, Failure> {
        let Arrived { vhost, need, installation, member, state } = arrived;
        let cluster = self.replicator.nodes().cluster.0;
        let (old, state) = match need {
            ShipmentNeed::Replacement => (Old::Damaged, state),
            // Read once the replica has ended, so that no vote comes later.
            ShipmentNeed::Behind => (Old::Outdated, self.kept_state(vhost, member, state)?),
        };
        installation.finish(cluster, member.get(), &state)?;
        Ok(old)
    }

    /// The hard state of a member that keeps its identity: a vote that it gave stays given.
    fn kept_state(
        &self,
        vhost: VhostId,
        member: MemberId,
        state: HardState,
    ) -> Result<HardState, Failure> {
        let directory = RealDirectory::open(&replica_path(&self.data_dir, vhost))?;
        let saved = storage::saved_member(&directory)?;
        let Some(saved) = saved.filter(|saved| saved.member_id == member.get()) else {
            return Err(Failure::Open("the replica belongs to another member".to_owned()));
        };
        Ok(state.keeping_vote_of(&saved.state))
    }
}
