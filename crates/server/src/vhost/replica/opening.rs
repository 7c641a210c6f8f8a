//! Opening of vhosts: from the log of a node alone, and as the replica of a group.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use broker::{Lsn, Vhost, VhostOptions};
use parking_lot::Mutex;
use replica::{Contents, LocalVhost};
use replication::{GroupId, Member, MemberId, QuarantineReason};
use storage::{RealDirectory, ReplicatedLog};
use tokio::sync::Semaphore;

use crate::clock::VhostClock;
use crate::disk::deaths::files::DeathFiles;
use crate::disk::json_files::node_file::VhostEntry;
use crate::disk::log::log_writer::LogSource;
use crate::disk::pages::page_files::PageFiles;
use crate::disk::private_files;
use crate::disk::progress::DiskProgress;
use crate::disk::recovery::pages::{LogReplay, PageRecovery};
use crate::disk::recovery::{self, RestoreError, Restored, RestoredReplica, VhostFiles};
use crate::disk::vhost_files;
use crate::limits::PAGE_LOOKS_MAX;
use crate::replicas::ReplicaTarget;
use crate::requests::{VhostLimit, maximum};
use crate::vhost::cluster::Cluster;
use crate::vhost::definition::VhostDefinition;
use crate::vhost::found_member::{
    FoundMember, GroupAge, found_member, loss, loss_at_begin, tell_lost,
};
use crate::vhost::handle::{State, Threads, VhostHandle};
use crate::vhost::lock::TimedLock;
use crate::vhost::place::{Place, Presence};
use crate::vhost::pressure::MemoryPressure;
use crate::vhost::registry::{VhostError, Vhosts};
use crate::vhost::timer::WakeUp;

impl Vhosts {
    /// An empty vhost with its options.
    fn empty_vhost(&self, entry: &VhostEntry) -> Result<Vhost, VhostError> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed)?;
        let options = VhostOptions {
            default_queue_type: entry.settings.default_queue_type,
            queues_max: maximum(&entry.settings.limits, VhostLimit::MaxQueues),
            delivers_after_commit: self.cluster.is_some(),
            ..self.options
        };
        let mut vhost = Vhost::new(&entry.name, seed, options);
        vhost.set_node_name(&self.node_name);
        Ok(vhost)
    }

    /// Recovers a vhost that only this node has.
    pub(in crate::vhost) fn begin_alone(
        &self,
        definition: Arc<VhostDefinition>,
        is_new: bool,
    ) -> Result<Arc<VhostHandle>, VhostError> {
        let entry = definition.entry();
        let vhost = self.empty_vhost(&entry)?;
        let path = vhost_files::vhost_path(&self.data_dir, entry.id);
        let files = self.files(&entry, &path, is_new);
        let restored = match recovery::restore(&files, vhost, self.clock.now()) {
            Ok(restored) => restored,
            Err(error) => match loss(&error).filter(|_| !is_new) {
                Some(why) => return self.begin_down(definition, &files, why),
                None => return Err(error.into()),
            },
        };
        let Restored { log, mut vhost, page_files, problems } = restored;
        vhost.set_tracing(entry.settings.tracing);
        vhost.set_alarm(self.clock.now(), self.alarm.load(Ordering::SeqCst));
        let durable = Lsn(log.last().0);
        let (mut death_files, deaths) = DeathFiles::open(&path, self.options.dead_letter_history);
        death_files.restored(vhost.restore_deaths(self.clock.now(), deaths));
        let contents = Contents::Leads(Box::new(vhost));
        let parts =
            Parts { contents, durable, page_files, problems, down: None, death_files, place: None };
        let handle = self.handle(definition, parts);
        self.threads.persister.add(Arc::clone(&handle) as Arc<dyn LogSource>, log);
        Ok(handle)
    }

    /// A handle of a vhost whose log cannot be read: nobody can use the vhost, but it can be deleted. Its log stays as it
    /// is.
    fn begin_down(
        &self,
        definition: Arc<VhostDefinition>,
        files: &VhostFiles<'_>,
        why: String,
    ) -> Result<Arc<VhostHandle>, VhostError> {
        let entry = definition.entry();
        tracing::error!(vhost = entry.name, "the vhost is down, its log stays as it is: {why}");
        private_files::create_dirs(files.path)
            .map_err(|error| RestoreError::Directory { path: files.path.to_owned(), error })?;
        let (empty, page_files) =
            recovery::empty_replica(files, self.empty_vhost(&entry)?, self.clock.now())?;
        let (death_files, _) = DeathFiles::open(files.path, self.options.dead_letter_history);
        let parts = Parts {
            contents: Contents::Follows(Box::new(empty)),
            durable: Lsn(0),
            page_files,
            problems: 0,
            down: Some(why),
            death_files,
            place: None,
        };
        Ok(self.handle(definition, parts))
    }

    /// Recovers the replica of a vhost and lets it take part in its group. The node `leader` leads it, as far as is known.
    pub(in crate::vhost) fn begin_replica(
        &self,
        cluster: &Cluster,
        definition: Arc<VhostDefinition>,
        age: GroupAge,
        leader: Option<Arc<str>>,
    ) -> Result<Arc<VhostHandle>, VhostError> {
        let entry = definition.entry();
        let path = vhost_files::vhost_path(&self.data_dir, entry.id);
        let unusable = |error| RestoreError::Directory { path: path.clone(), error };
        let (found, is_new) = self.find_member(cluster, &entry, age).map_err(unusable)?;
        let files = self.files(&entry, &path, is_new);
        let vhost = self.empty_vhost(&entry)?;
        let opened = match found {
            Some(FoundMember::Member(me)) => {
                self.open_member(cluster, &entry, &files, me, vhost)?
            }
            Some(FoundMember::Lost(why)) => OpenedMember::lost(cluster, &entry, &why, vhost),
            None => OpenedMember::elsewhere(cluster, &entry, vhost),
        };
        let (member, presence, follower, page_files, problems) = match opened {
            OpenedMember::Member { member, replica, page_files, problems } => {
                (Some(*member), Presence::Here, replica, page_files, problems)
            }
            OpenedMember::Without { presence, vhost } => {
                private_files::create_dirs(&path).map_err(unusable)?;
                let (replica, page_files) =
                    recovery::empty_replica(&files, vhost, self.clock.now())?;
                (None, presence, replica, page_files, 0)
            }
        };
        let last = member.as_ref().map(|member| member.log().applier().applied_position());
        let durable = Lsn(last.map_or(0, |last| last.0));
        let (death_files, deaths) = DeathFiles::open(&path, self.options.dead_letter_history);
        let replicator = Arc::clone(&cluster.replicator);
        let place = Some(Place::new(replicator, presence, deaths, leader));
        let parts = Parts {
            contents: Contents::Follows(Box::new(follower)),
            durable,
            page_files,
            problems,
            down: None,
            death_files,
            place,
        };
        let handle = self.handle(definition, parts);
        let target = Arc::clone(&handle) as Arc<dyn ReplicaTarget>;
        match member {
            Some(member) => cluster.replicator.add(target, member),
            None => cluster.replicator.add_without_member(target),
        }
        Ok(handle)
    }

    /// The member of a vhost on this node, or none if other nodes have the vhost. True if its group begins.
    fn find_member(
        &self,
        cluster: &Cluster,
        entry: &VhostEntry,
        age: GroupAge,
    ) -> io::Result<(Option<FoundMember>, bool)> {
        let oldest = cluster.replicator.nodes().my_first_member();
        let Some(first) = cluster.first_member(entry.placement.as_deref()) else {
            if !vhost_files::has_log(&self.data_dir, entry.id) {
                return Ok((None, false));
            }
            // Its group may not have removed it yet.
            let found = found_member(&self.data_dir, entry.id, (oldest, oldest), GroupAge::Old)?;
            return Ok((Some(found).filter(|found| !found.is_lost()), false));
        };
        let age = match age {
            GroupAge::OnLostDisk => age,
            // The node was chosen again, and may have left meanwhile.
            _ if first != oldest => GroupAge::Elsewhere,
            // Only those begin a group that it begins with.
            GroupAge::New if !cluster.begins_with(&entry.voters, first) => GroupAge::Elsewhere,
            GroupAge::New | GroupAge::Old | GroupAge::Elsewhere => age,
        };
        let found = found_member(&self.data_dir, entry.id, (first, oldest), age)?;
        Ok((Some(found), age == GroupAge::New))
    }

    /// Opens the log of a replica and begins its member.
    fn open_member(
        &self,
        cluster: &Cluster,
        entry: &VhostEntry,
        files: &VhostFiles<'_>,
        me: MemberId,
        vhost: Vhost,
    ) -> Result<OpenedMember, VhostError> {
        let identity = cluster.identity(me, &entry.voters);
        let restored = recovery::restore_replica(files, identity, vhost, self.clock.now());
        let RestoredReplica { log, replica, page_files, fault, problems } = match restored {
            Ok(restored) => restored,
            Err(error) => match loss(&error) {
                Some(why) => {
                    let vhost = self.empty_vhost(entry)?;
                    return Ok(OpenedMember::lost(cluster, entry, &why, vhost));
                }
                None => return Err(error.into()),
            },
        };
        let config = cluster.member_config(GroupId(entry.id.0), me)?;
        let mut member = match Member::open(config, log) {
            Ok(member) => member,
            Err(error) => match loss_at_begin(&error) {
                Some(why) => {
                    let vhost = self.empty_vhost(entry)?;
                    return Ok(OpenedMember::lost(cluster, entry, &why, vhost));
                }
                None => return Err(VhostError::Member { vhost: entry.name.clone(), error }),
            },
        };
        if let Some(fault) = fault {
            member.quarantine(QuarantineReason::Damaged(fault));
        }
        Ok(OpenedMember::Member { member: Box::new(member), replica, page_files, problems })
    }

    /// The files of a vhost at `path`.
    fn files<'a>(&'a self, entry: &VhostEntry, path: &'a Path, is_new: bool) -> VhostFiles<'a> {
        VhostFiles {
            id: entry.id,
            path,
            is_new,
            durability: self.durability,
            reserve: &self.reserve,
            io: &self.io,
        }
    }

    /// A handle that the timer and the pager know.
    fn handle(&self, definition: Arc<VhostDefinition>, parts: Parts) -> Arc<VhostHandle> {
        let id = definition.id();
        let Parts { contents, durable, page_files, problems, down, death_files, place } = parts;
        let local = match place {
            Some(_) => LocalVhost::of_group(contents, durable),
            None => LocalVhost::alone(contents),
        };
        let handle = Arc::new(VhostHandle {
            id,
            name: Arc::clone(definition.name()),
            definition,
            state: TimedLock::new(State::new(local), Arc::clone(&self.threads.hold_watch)),
            wake_up: WakeUp::new(id, self.clock),
            threads: self.threads.clone(),
            disk: DiskProgress::new(durable),
            page_files,
            log_problems: problems,
            down,
            death_files: Mutex::new(death_files),
            browse_permits: Semaphore::new(PAGE_LOOKS_MAX),
            pressure: MemoryPressure::new(Arc::clone(&self.alarm)),
            clock: VhostClock::new(self.clock),
            place,
        });
        // The threads must know the vhost before any event in it.
        let Threads { timer, pager, .. } = &self.threads;
        let (target, source) = (Arc::downgrade(&handle), Arc::downgrade(&handle));
        timer.add(id, target);
        pager.add(id, source);
        handle
    }
}

/// The member of a vhost on this node, if it can take part.
#[expect(clippy::large_enum_variant, reason = "one is made when a vhost is opened")]
enum OpenedMember {
    Member {
        member: Box<Member<ReplicatedLog<RealDirectory>>>,
        replica: LogReplay,
        page_files: Arc<PageFiles>,
        problems: u64,
    },
    Without {
        presence: Presence,
        /// An empty vhost.
        vhost: Vhost,
    },
}

impl OpenedMember {
    /// No member, because the replica must be rebuilt, unless other nodes have the vhost by now.
    fn lost(cluster: &Cluster, entry: &VhostEntry, why: &str, vhost: Vhost) -> Self {
        if cluster.first_member(entry.placement.as_deref()).is_none() {
            tracing::warn!(
                vhost = entry.name,
                "a replica that is not needed any more is lost: {why}"
            );
            return Self::elsewhere(cluster, entry, vhost);
        }
        tell_lost(&entry.name, why);
        cluster.replicator.statuses().note_lost(entry.id, &entry.name);
        Self::Without { presence: Presence::Lost, vhost }
    }

    /// No member, because other nodes have the vhost.
    fn elsewhere(cluster: &Cluster, entry: &VhostEntry, vhost: Vhost) -> Self {
        cluster.replicator.statuses().forget(entry.id);
        Self::Without { presence: Presence::Elsewhere, vhost }
    }
}

/// The parts of a handle that depend on the role of the node.
struct Parts {
    contents: Contents<PageRecovery>,
    durable: Lsn,
    page_files: Arc<PageFiles>,
    problems: u64,
    /// The reason why the vhost is down.
    down: Option<String>,
    death_files: DeathFiles,
    place: Option<Place>,
}
