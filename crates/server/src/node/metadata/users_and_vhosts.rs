//! Changes of users and vhosts while the broker runs.
//!
//! Changes are made one after another: each is saved first and takes effect then, so that no change is lost
//! and no reported change can be undone by a crash. All of them wait for the disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use amqp::reply_code::ReplyCode;
use broker::ConnectionId;
use broker::access::{Access, PermissionPattern, Permissions};
use broker::refusal::Refusal;
use parking_lot::MutexGuard;

use crate::auth::password::PasswordHash;
use crate::auth::{TopicPattern, User, Users};
use crate::disk::json_files::node_file::{self, NodeFileError, VhostEntry};
use crate::disk::vhost_files;
use crate::limits::{EXIT_DISK, TOPIC_PERMISSIONS_MAX, USER_NAME_BYTES_MAX};
use crate::membership::placement::Placement;
use crate::node::Node;
use crate::node::alarms::alarm::Alarm;
use crate::requests::{ChangeError, UserLimit, VhostChange, VhostLimit, VhostSettings};
use crate::vhost::VhostHandle;

/// A user in definitions.
#[derive(Debug)]
pub(crate) struct NewUser {
    pub(crate) name: String,
    pub(crate) password: PasswordHash,
    pub(crate) tags: Vec<String>,
    /// New limits; none to keep the old ones.
    pub(crate) limits: Option<BTreeMap<UserLimit, i64>>,
}

/// A vhost in definitions.
#[derive(Debug)]
pub(crate) struct NewVhost {
    pub(crate) name: String,
    pub(crate) change: VhostChange,
    /// New limits; none to keep the old ones.
    pub(crate) limits: Option<BTreeMap<VhostLimit, i64>>,
}

/// Permissions of a user in a vhost, in definitions.
#[derive(Debug)]
pub(crate) struct Grant<T> {
    pub(crate) user: String,
    pub(crate) vhost: String,
    pub(crate) what: T,
}

/// Users and vhosts with permissions, in definitions.
#[derive(Debug)]
pub(crate) struct Identities {
    pub(crate) users: Vec<NewUser>,
    pub(crate) vhosts: Vec<NewVhost>,
    pub(crate) permissions: Vec<Grant<Permissions>>,
    pub(crate) topic_permissions: Vec<Grant<TopicPattern>>,
}

impl Identities {
    /// True if there is nothing to take over.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { users, vhosts, permissions, topic_permissions } = self;
        users.is_empty()
            && vhosts.is_empty()
            && permissions.is_empty()
            && topic_permissions.is_empty()
    }
}

/// Users and vhosts as definitions leave them.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// All users.
    pub(crate) users: Users,
    /// The settings of the vhosts that the definitions name.
    pub(crate) vhosts: BTreeMap<String, VhostSettings>,
}

/// Users and vhosts with their settings, as a change leaves them.
#[derive(Debug)]
pub(in crate::node) struct Desired {
    pub(in crate::node) users: Users,
    pub(in crate::node) vhosts: BTreeMap<String, Arc<VhostSettings>>,
    /// Nodes that were named for vhosts of a cluster; without them, the node that leads the metadata chooses.
    pub(in crate::node) placements: BTreeMap<String, Arc<Placement>>,
}

impl Node {
    /// Computes the users and vhosts that definitions would leave. Permissions of missing users are ignored.
    pub(crate) fn outcome(&self, identities: Identities) -> Result<Outcome, ChangeError> {
        self.check_memory()?;
        let Identities { users: new, vhosts, permissions, topic_permissions } = identities;
        let mut users = self.auth.to_change();
        for NewUser { name, password, tags, limits } in new {
            let user = users
                .entry(name.clone())
                .or_insert_with(|| Arc::new(User::new(&name, PasswordHash::None, Vec::new())));
            let user = Arc::make_mut(user);
            (user.password, user.tags) = (password, tags);
            user.limits = limits.unwrap_or_else(|| std::mem::take(&mut user.limits));
        }
        for Grant { user, vhost, what } in permissions {
            if let Some(user) = users.get_mut(&user) {
                Arc::make_mut(user).permissions.insert(vhost, what);
            }
        }
        for Grant { user, vhost, what } in topic_permissions {
            if let Some(user) = users.get_mut(&user) {
                let patterns = Arc::make_mut(user).topic_permissions.entry(vhost).or_default();
                set_topic_pattern(patterns, what)?;
            }
        }
        let mut settings: BTreeMap<String, VhostSettings> = BTreeMap::new();
        for NewVhost { name, change, limits } in vhosts {
            self.check_replicas(&change)?;
            let known = || self.vhosts.get(&name).map(|handle| (*handle.settings()).clone());
            let settings = settings
                .entry(name.clone())
                .or_insert_with(|| known().unwrap_or_else(|| self.new_settings()));
            settings.change(change);
            settings.limits = limits.unwrap_or_else(|| std::mem::take(&mut settings.limits));
        }
        Ok(Outcome { users, vhosts: settings })
    }

    /// Creates or changes all of these, or none.
    pub(crate) fn take_over(&self, identities: Identities) -> Result<(), ChangeError> {
        let (_one_at_a_time, mut desired) = self.begin_change()?;
        let Outcome { users, vhosts } = self.outcome(identities)?;
        desired.users = users;
        desired.vhosts.extend(vhosts.into_iter().map(|(name, to)| (name, Arc::new(to))));
        self.commit(desired)
    }

    /// Waits for earlier changes. Returns the users and vhosts as these leave them.
    ///
    /// # Errors
    /// If another node of the cluster makes the changes.
    pub(in crate::node) fn begin_change(
        &self,
    ) -> Result<(MutexGuard<'_, ()>, Desired), ChangeError> {
        let one_at_a_time = self.changes.lock();
        self.begin_change_of_metadata()?;
        let vhosts = self.vhosts.all();
        let settings = vhosts.iter().map(|handle| (handle.name().to_owned(), handle.settings()));
        let (users, placements) = (self.auth.to_change(), BTreeMap::new());
        Ok((one_at_a_time, Desired { users, vhosts: settings.collect(), placements }))
    }

    /// Saves users and vhosts, and lets them take effect.
    pub(in crate::node) fn commit(&self, desired: Desired) -> Result<(), ChangeError> {
        match &self.metadata {
            Some(metadata) => self.commit_in_cluster(metadata, &desired),
            None => self.commit_alone(desired),
        }
    }

    fn commit_alone(&self, desired: Desired) -> Result<(), ChangeError> {
        let mut made = Vec::new();
        let saved = self.save_alone(&desired, &mut made);
        if let Err(unchanged) = saved {
            made.iter().for_each(|handle| self.discard(handle));
            return Err(unchanged);
        }
        let is_gone = |handle: &Arc<VhostHandle>| !desired.vhosts.contains_key(handle.name());
        let gone: Vec<Arc<VhostHandle>> = self.vhosts.all().into_iter().filter(is_gone).collect();
        let gone = gone.iter().filter_map(|handle| self.vhosts.remove(handle.name()));
        let gone: Vec<Arc<VhostHandle>> = gone.collect();
        let replaced = self.settle(desired.users, &desired.vhosts, &made);
        assert!(replaced.is_empty(), "a vhost was made under the name of another");
        gone.iter().for_each(|handle| self.discard(handle));
        Ok(())
    }

    /// Writes users and vhosts to the disk; new vhosts are in `made`, whether the call succeeds or not.
    fn save_alone(
        &self,
        desired: &Desired,
        made: &mut Vec<Arc<VhostHandle>>,
    ) -> Result<(), ChangeError> {
        let mut entries = Vec::new();
        for (name, settings) in &desired.vhosts {
            entries.push(match self.vhosts.get(name) {
                Some(handle) => VhostEntry { settings: Arc::clone(settings), ..handle.entry() },
                None => {
                    let handle = self.vhosts.make(name, Arc::clone(settings));
                    let handle = handle.map_err(|error| unable(&error))?;
                    let entry = handle.entry();
                    made.push(handle);
                    entry
                }
            });
        }
        let (next_vhost_id, _) = self.vhosts.entries();
        // After this point the next start removes the files of a deleted vhost if this process does not.
        self.write_down(next_vhost_id, entries, &desired.users)
    }

    /// Lets saved users and vhosts take effect; `made` are the vhosts that are new, and those that are gone cannot be
    /// found any more. Returns those that had the name of a new one until now.
    pub(super) fn settle(
        &self,
        users: Users,
        vhosts: &BTreeMap<String, Arc<VhostSettings>>,
        made: &[Arc<VhostHandle>],
    ) -> Vec<Arc<VhostHandle>> {
        let replaced = made.iter().filter_map(|handle| self.vhosts.replace(handle)).collect();
        for handle in self.vhosts.all() {
            if let Some(settings) = vhosts.get(handle.name())
                && *settings != handle.settings()
            {
                self.vhosts.set_settings(&handle, Arc::clone(settings));
            }
        }
        let before = self.auth.to_change();
        let changed = users
            .iter()
            .filter(|(name, user)| before.get(*name).is_none_or(|known| !Arc::ptr_eq(known, user)));
        let changed: Vec<String> = changed.map(|(name, _)| name.clone()).collect();
        let gone = before.keys().filter(|name| !users.contains_key(*name));
        let gone: Vec<&String> = gone.collect();
        self.auth.replace(users);
        // Users may have limits now.
        self.user_slots.note_change();
        changed.iter().for_each(|name| self.refresh_access(name));
        for name in gone {
            let refusal = user_deleted(name);
            self.vhosts.all().iter().for_each(|handle| handle.close_user(name, &refusal));
        }
        replaced
    }

    /// Checks that memory allows more users and vhosts.
    pub(crate) fn check_memory(&self) -> Result<(), ChangeError> {
        if self.alarms.own().is_some_and(Alarm::is_of_memory) {
            let text = "low on memory: no user, vhost or definition is added while the alarm is on";
            return Err(ChangeError::Unable(text.to_owned()));
        }
        Ok(())
    }

    /// Adds a user with these permissions, or changes an existing one, who keeps the own permissions and, without new ones, the limits.
    /// True if the user is new.
    pub(crate) fn put_user_with_hash(
        &self,
        name: &str,
        password: PasswordHash,
        tags: Vec<String>,
        limits: Option<BTreeMap<UserLimit, i64>>,
        permissions: BTreeMap<String, Permissions>,
    ) -> Result<bool, ChangeError> {
        let (_one_at_a_time, mut desired) = self.begin_change()?;
        let known = desired.users.get(name);
        let mut user = known
            .map_or_else(|| User::new(name, PasswordHash::None, Vec::new()), |u| (**u).clone());
        let is_new = known.is_none();
        if is_new {
            check_user_name(name).map_err(ChangeError::Invalid)?;
            self.check_memory()?;
            user.permissions = permissions;
        }
        (user.password, user.tags) = (password, tags);
        user.limits = limits.unwrap_or(user.limits);
        desired.users.insert(name.to_owned(), Arc::new(user));
        self.commit(desired)?;
        Ok(is_new)
    }

    /// Changes an existing user.
    pub(crate) fn change_user<T>(
        &self,
        name: &str,
        change: impl FnOnce(&mut User) -> Result<T, ChangeError>,
    ) -> Result<T, ChangeError> {
        let (_one_at_a_time, mut desired) = self.begin_change()?;
        let mut user = (**desired.users.get(name).ok_or(ChangeError::NoSuchUser)?).clone();
        let result = change(&mut user)?;
        desired.users.insert(name.to_owned(), Arc::new(user));
        self.commit(desired)?;
        Ok(result)
    }

    /// Removes these users, as far as they exist, and closes their connections. Returns the number of removed
    /// users.
    pub(crate) fn remove_users(&self, names: &[String]) -> Result<usize, ChangeError> {
        let (_one_at_a_time, mut desired) = self.begin_change()?;
        let before = desired.users.len();
        desired.users.retain(|name, _| !names.contains(name));
        let gone = before - desired.users.len();
        if gone > 0 {
            self.commit(desired)?;
        }
        Ok(gone)
    }

    /// Creates a vhost in which `user` has all permissions, or changes an existing one. True if the vhost is
    /// new.
    pub(crate) fn make_or_change_vhost(
        &self,
        name: &str,
        change: VhostChange,
        user: &str,
    ) -> Result<bool, ChangeError> {
        let (_one_at_a_time, mut desired) = self.begin_change()?;
        let is_new = !desired.vhosts.contains_key(name);
        self.check_replicas(&change)?;
        if is_new {
            self.check_memory()?;
            if let Some(maker) = desired.users.get_mut(user) {
                let maker = Arc::make_mut(maker);
                maker.permissions.insert(name.to_owned(), everything());
            }
        }
        let settings = desired.vhosts.entry(name.to_owned());
        let settings = settings.or_insert_with(|| Arc::new(self.new_settings()));
        Arc::make_mut(settings).change(change);
        self.commit(desired)?;
        Ok(is_new)
    }

    /// Changes the settings of an existing vhost.
    pub(crate) fn change_settings(
        &self,
        name: &str,
        change: impl FnOnce(&mut VhostSettings),
    ) -> Result<(), ChangeError> {
        let (_one_at_a_time, mut desired) = self.begin_change()?;
        let settings = desired.vhosts.get_mut(name).ok_or(ChangeError::NoSuchVhost)?;
        change(Arc::make_mut(settings));
        self.commit(desired)
    }

    /// Removes a vhost with its contents and all permissions in it, and closes its connections.
    pub(crate) fn remove_vhost(&self, name: &str) -> Result<(), ChangeError> {
        let (_one_at_a_time, mut desired) = self.begin_change()?;
        let settings = desired.vhosts.remove(name).ok_or(ChangeError::NoSuchVhost)?;
        if settings.protected_from_deletion == Some(true) {
            return Err(ChangeError::Protected(name.to_owned()));
        }
        for user in desired.users.values_mut().filter(|user| user.is_known_in(name)) {
            let user = Arc::make_mut(user);
            user.permissions.remove(name);
            user.topic_permissions.remove(name);
        }
        self.commit(desired)
    }

    /// Rechecks a connection that was just opened, because its user may have changed or been deleted
    /// meanwhile.
    pub(crate) fn recheck(
        &self,
        handle: &VhostHandle,
        connection: ConnectionId,
        checked: &Arc<User>,
    ) {
        match self.auth.user(&checked.name) {
            None => handle.force_close(connection, user_deleted(&checked.name)),
            Some(user) if Arc::ptr_eq(&user, checked) => {}
            Some(_) => self.refresh_access(&checked.name),
        }
    }

    /// Applies the current permissions of a user to open connections.
    pub(crate) fn refresh_access(&self, name: &str) {
        let mut applied = None;
        // Again if the user has changed meanwhile, so that the newest permissions are applied last.
        while let Some(user) = self.auth.user(name)
            && applied.as_ref().is_none_or(|applied| !Arc::ptr_eq(applied, &user))
        {
            for handle in self.vhosts.all() {
                let nothing = || Arc::new(Access::nothing(name.into()));
                handle.set_access(&user.access(handle.name()).unwrap_or_else(nothing));
            }
            applied = Some(user);
        }
    }

    pub(super) fn write_down(
        &self,
        next_vhost_id: u64,
        vhosts: Vec<VhostEntry>,
        users: &Users,
    ) -> Result<(), ChangeError> {
        let contents = self.node_file(next_vhost_id, vhosts, users.values().cloned().collect());
        let written = node_file::write(&self.disk.data_dir, &contents);
        if let Err(error @ NodeFileError::Replace { .. }) = &written {
            tracing::error!(
                "{error}; it is unknown which users and vhosts are on the disk, so the broker ends"
            );
            std::process::exit(EXIT_DISK);
        }
        written.map_err(|error| unable(&error))
    }

    /// Closes a vhost that is not saved any more, and removes its files.
    pub(super) fn discard(&self, handle: &Arc<VhostHandle>) {
        let (vhost, id) = (handle.name(), handle.id());
        self.close_deleted(handle);
        match vhost_files::remove_vhost(&self.disk.data_dir, id) {
            Ok(()) => tracing::info!(vhost, "vhost deleted"),
            Err(error) => {
                tracing::warn!(vhost, %error, "cannot remove the files of a deleted vhost before the next start");
            }
        }
    }

    /// Closes a vhost that is not saved any more. After the call, nothing touches its files.
    pub(super) fn close_deleted(&self, handle: &Arc<VhostHandle>) {
        let text = format!("vhost '{}' is deleted", handle.name());
        handle.retire(&Refusal::new(ReplyCode::ConnectionForced, text));
        handle.stop_writing_deaths();
    }
}

impl User {
    /// True if the user has any permission in a vhost.
    fn is_known_in(&self, vhost: &str) -> bool {
        self.permissions.contains_key(vhost) || self.topic_permissions.contains_key(vhost)
    }
}

/// Adds a topic permission, or replaces the one for the same exchange.
///
/// # Errors
/// If the user would have too many.
pub(crate) fn set_topic_pattern(
    patterns: &mut Vec<TopicPattern>,
    new: TopicPattern,
) -> Result<(), ChangeError> {
    patterns.retain(|known| known.exchange != new.exchange);
    if patterns.len() >= TOPIC_PERMISSIONS_MAX {
        return Err(ChangeError::Invalid(format!(
            "a user must not have topic permissions for more than {TOPIC_PERMISSIONS_MAX} exchanges \
             of a vhost"
        )));
    }
    patterns.push(new);
    patterns.sort_by(|a, b| a.exchange.cmp(&b.exchange));
    Ok(())
}

/// Checks the name of a new user.
///
/// # Errors
/// A sentence.
pub(crate) fn check_user_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > USER_NAME_BYTES_MAX {
        return Err(format!("the name of a user has 1 to {USER_NAME_BYTES_MAX} bytes"));
    }
    Ok(())
}

fn user_deleted(name: &str) -> Refusal {
    Refusal::new(ReplyCode::ConnectionForced, format!("user '{name}' is deleted"))
}

/// Permissions for everything in a vhost.
pub(crate) fn everything() -> Permissions {
    let all = PermissionPattern::new(".*").expect("the pattern for everything is one");
    Permissions { configure: all.clone(), write: all.clone(), read: all }
}

/// Logs why the node cannot make the change, and returns that it was not made.
fn unable(error: &dyn std::error::Error) -> ChangeError {
    tracing::error!(%error, "users and vhosts not changed");
    ChangeError::Unable("the change cannot be written to the disk".to_owned())
}
