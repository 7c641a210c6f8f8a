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
use management::{ChangeError, UserLimit, VhostChange, VhostLimit, VhostSettings};

use crate::auth::password::PasswordHash;
use crate::auth::{TopicPattern, User, Users};
use crate::disk::node_file::{self, NodeFile, NodeFileError, VhostEntry};
use crate::disk::vhost_files;
use crate::limits::{EXIT_DISK, TOPIC_PERMISSIONS_MAX};
use crate::node::Node;
use crate::node::alarm::Alarm;
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

/// Users and vhosts as definitions leave them.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// All users.
    pub(crate) users: Users,
    /// The settings of the vhosts that the definitions name.
    pub(crate) vhosts: BTreeMap<String, VhostSettings>,
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
            let known = || self.vhosts.get(&name).map(|handle| (*handle.settings()).clone());
            let settings =
                settings.entry(name.clone()).or_insert_with(|| known().unwrap_or_default());
            settings.change(change);
            settings.limits = limits.unwrap_or_else(|| std::mem::take(&mut settings.limits));
        }
        Ok(Outcome { users, vhosts: settings })
    }

    /// Creates or changes all of these, or none.
    pub(crate) fn take_over(&self, identities: Identities) -> Result<(), ChangeError> {
        let _one_at_a_time = self.changes.lock();
        let Outcome { users, vhosts: settings } = self.outcome(identities)?;
        let mut made = Vec::new();
        let taken = self.take_over_vhosts(settings, &users, &mut made);
        if let Err(unchanged) = taken {
            made.iter().for_each(|handle| self.discard(handle));
            return Err(unchanged);
        }
        made.iter().for_each(|handle| self.vhosts.insert(handle));
        let names: Vec<String> = users.keys().cloned().collect();
        self.auth.replace(users);
        names.iter().for_each(|name| self.refresh_access(name));
        Ok(())
    }

    /// Checks that a vhost can be made or removed: in a cluster, all nodes must have the same ones.
    fn check_vhosts_can_change(&self) -> Result<(), ChangeError> {
        if self.replication.is_none() {
            return Ok(());
        }
        let text =
            "the vhosts of a cluster are those of the first start: none can be made or removed yet";
        Err(ChangeError::Unable(text.to_owned()))
    }

    /// Checks that memory allows more users and vhosts.
    pub(crate) fn check_memory(&self) -> Result<(), ChangeError> {
        if self.alarms.current.borrow().is_some_and(Alarm::is_of_memory) {
            let text = "low on memory: no user, vhost or definition is added while the alarm is on";
            return Err(ChangeError::Unable(text.to_owned()));
        }
        Ok(())
    }

    /// Saves users and vhosts; new vhosts are in `made`, whether the call succeeds or not.
    fn take_over_vhosts(
        &self,
        settings: BTreeMap<String, VhostSettings>,
        users: &Users,
        made: &mut Vec<Arc<VhostHandle>>,
    ) -> Result<(), ChangeError> {
        let mut changed = Vec::new();
        for (name, settings) in settings {
            let settings = Arc::new(settings);
            match self.vhosts.get(&name) {
                Some(handle) => changed.push((handle, settings)),
                None => {
                    made.push(self.vhosts.make(&name, settings).map_err(|error| unable(&error))?);
                }
            }
        }
        let (next_vhost_id, mut vhosts) = self.vhosts.entries();
        for vhost in &mut vhosts {
            if let Some((_, settings)) = changed.iter().find(|(handle, _)| handle.id() == vhost.id)
            {
                vhost.settings = Arc::clone(settings);
            }
        }
        vhosts.extend(made.iter().map(|handle| handle.entry()));
        self.write_down(next_vhost_id, vhosts, users)?;
        changed.into_iter().for_each(|(handle, settings)| handle.set_settings(settings));
        Ok(())
    }

    /// Adds a user, or changes an existing one, who keeps the permissions and, without new ones, the limits.
    /// True if the user is new.
    pub(crate) fn put_user(
        &self,
        name: &str,
        password: PasswordHash,
        tags: Vec<String>,
        limits: Option<BTreeMap<UserLimit, i64>>,
    ) -> Result<bool, ChangeError> {
        let _one_at_a_time = self.changes.lock();
        let mut users = self.auth.to_change();
        let known = users.get(name);
        let mut user = known
            .map_or_else(|| User::new(name, PasswordHash::None, Vec::new()), |u| (**u).clone());
        let is_new = known.is_none();
        if is_new {
            self.check_memory()?;
        }
        (user.password, user.tags) = (password, tags);
        user.limits = limits.unwrap_or(user.limits);
        users.insert(name.to_owned(), Arc::new(user));
        self.write_users(users)?;
        self.refresh_access(name);
        Ok(is_new)
    }

    /// Changes an existing user.
    pub(crate) fn change_user<T>(
        &self,
        name: &str,
        change: impl FnOnce(&mut User) -> Result<T, ChangeError>,
    ) -> Result<T, ChangeError> {
        let _one_at_a_time = self.changes.lock();
        let mut users = self.auth.to_change();
        let mut user = (**users.get(name).ok_or(ChangeError::NoSuchUser)?).clone();
        let result = change(&mut user)?;
        users.insert(name.to_owned(), Arc::new(user));
        self.write_users(users)?;
        self.refresh_access(name);
        Ok(result)
    }

    /// Removes these users, as far as they exist, and closes their connections. Returns the number of removed
    /// users.
    pub(crate) fn remove_users(&self, names: &[String]) -> Result<usize, ChangeError> {
        let _one_at_a_time = self.changes.lock();
        let mut users = self.auth.to_change();
        let gone: Vec<&String> =
            names.iter().filter(|name| users.remove(name.as_str()).is_some()).collect();
        if gone.is_empty() {
            return Ok(0);
        }
        self.write_users(users)?;
        for name in &gone {
            let refusal = user_deleted(name);
            self.vhosts.all().iter().for_each(|handle| handle.close_user(name, &refusal));
        }
        Ok(gone.len())
    }

    /// Creates a vhost in which `user` has all permissions, or changes an existing one. True if the vhost is
    /// new.
    pub(crate) fn make_or_change_vhost(
        &self,
        name: &str,
        change: VhostChange,
        user: &str,
    ) -> Result<bool, ChangeError> {
        let _one_at_a_time = self.changes.lock();
        if let Some(handle) = self.vhosts.get(name) {
            self.write_settings(&handle, |settings| settings.change(change))?;
            return Ok(false);
        }
        self.check_vhosts_can_change()?;
        self.check_memory()?;
        let mut settings = VhostSettings::default();
        settings.change(change);
        let handle = self.vhosts.make(name, Arc::new(settings)).map_err(|error| unable(&error))?;
        let mut users = self.auth.to_change();
        if let Some(maker) = users.get(user) {
            let mut maker = (**maker).clone();
            maker.permissions.insert(name.to_owned(), everything()?);
            users.insert(user.to_owned(), Arc::new(maker));
        }
        let (next_vhost_id, mut vhosts) = self.vhosts.entries();
        vhosts.push(handle.entry());
        if let Err(unchanged) = self.write_down(next_vhost_id, vhosts, &users) {
            self.discard(&handle);
            return Err(unchanged);
        }
        self.auth.replace(users);
        self.vhosts.insert(&handle);
        Ok(true)
    }

    /// Changes the settings of an existing vhost.
    pub(crate) fn change_settings(
        &self,
        name: &str,
        change: impl FnOnce(&mut VhostSettings),
    ) -> Result<(), ChangeError> {
        let _one_at_a_time = self.changes.lock();
        let handle = self.vhosts.get(name).ok_or(ChangeError::NoSuchVhost)?;
        self.write_settings(&handle, change)
    }

    /// Removes a vhost with its contents and all permissions in it, and closes its connections.
    pub(crate) fn remove_vhost(&self, name: &str) -> Result<(), ChangeError> {
        let _one_at_a_time = self.changes.lock();
        let handle = self.vhosts.get(name).ok_or(ChangeError::NoSuchVhost)?;
        if handle.settings().protected_from_deletion == Some(true) {
            return Err(ChangeError::Protected(name.to_owned()));
        }
        self.check_vhosts_can_change()?;
        let mut users = self.auth.to_change();
        for user in users.values_mut().filter(|user| user.is_known_in(name)) {
            let mut changed = (**user).clone();
            changed.permissions.remove(name);
            changed.topic_permissions.remove(name);
            *user = Arc::new(changed);
        }
        let (next_vhost_id, mut vhosts) = self.vhosts.entries();
        vhosts.retain(|vhost| vhost.name != name);
        // After this point the next start removes its files if this process does not.
        self.write_down(next_vhost_id, vhosts, &users)?;
        self.vhosts.remove(name);
        self.auth.replace(users);
        self.discard(&handle);
        Ok(())
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

    fn write_users(&self, users: Users) -> Result<(), ChangeError> {
        let (next_vhost_id, vhosts) = self.vhosts.entries();
        self.write_down(next_vhost_id, vhosts, &users)?;
        self.auth.replace(users);
        Ok(())
    }

    fn write_settings(
        &self,
        handle: &VhostHandle,
        change: impl FnOnce(&mut VhostSettings),
    ) -> Result<(), ChangeError> {
        let mut settings = (*handle.settings()).clone();
        change(&mut settings);
        let settings = Arc::new(settings);
        let (next_vhost_id, mut vhosts) = self.vhosts.entries();
        let changed = vhosts.iter_mut().filter(|vhost| vhost.id == handle.id());
        changed.for_each(|vhost| vhost.settings = Arc::clone(&settings));
        let users = self.auth.to_change();
        self.write_down(next_vhost_id, vhosts, &users)?;
        handle.set_settings(settings);
        Ok(())
    }

    fn write_down(
        &self,
        next_vhost_id: u64,
        vhosts: Vec<VhostEntry>,
        users: &Users,
    ) -> Result<(), ChangeError> {
        let contents = NodeFile { next_vhost_id, vhosts, users: users.values().cloned().collect() };
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
    fn discard(&self, handle: &Arc<VhostHandle>) {
        let (vhost, id) = (handle.name(), handle.id());
        let text = format!("vhost '{vhost}' is deleted");
        handle.retire(&Refusal::new(ReplyCode::ConnectionForced, text));
        handle.stop_writing_deaths();
        match vhost_files::remove_vhost(&self.disk.data_dir, id) {
            Ok(()) => tracing::info!(vhost, "vhost deleted"),
            Err(error) => {
                tracing::warn!(vhost, %error, "cannot remove the files of a deleted vhost before the next start");
            }
        }
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

fn user_deleted(name: &str) -> Refusal {
    Refusal::new(ReplyCode::ConnectionForced, format!("user '{name}' is deleted"))
}

fn everything() -> Result<Permissions, ChangeError> {
    let all = PermissionPattern::new(".*").map_err(ChangeError::Unable)?;
    Ok(Permissions { configure: all.clone(), write: all.clone(), read: all })
}

/// Logs why the node cannot make the change, and returns that it was not made.
fn unable(error: &dyn std::error::Error) -> ChangeError {
    tracing::error!(%error, "users and vhosts not changed");
    ChangeError::Unable("the change cannot be written to the disk".to_owned())
}
