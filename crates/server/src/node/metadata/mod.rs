//! The metadata of a cluster on this node: changes are proposed by the node that leads them, and every node lets
//! committed ones take effect.
//!
//! `node.json` and `global_parameters.json` are what the node has followed so far: with them it opens its vhosts at a
//! start, before it has heard of any other node.

pub(crate) mod followed;
pub(crate) mod global_parameters;
pub(crate) mod membership;
mod record_level;
pub(crate) mod users_and_vhosts;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use replication::levels::FIRST_RECORD_LEVEL;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::auth::{User, Users};
use crate::disk::json_files::members::item_value;
use crate::disk::json_files::node_file::VhostEntry;
use crate::disk::json_files::stored_user::StoredUser;
use crate::disk::vhost_files::{self, VhostId};
use crate::membership::node_list::{ListedNode, NodeList};
use crate::metadata::{CommittedItems, ItemChange, ItemKey, MetadataError};
use crate::node::Node;
use crate::node::metadata::followed::{Followed, NodeMetadata};
use crate::node::metadata::users_and_vhosts::Desired;
use crate::requests::ChangeError;
use crate::vhost::{GroupAge, VhostDefinition, VhostHandle};

/// Users, vhosts, parameters and nodes, as items tell them.
#[derive(Debug)]
struct Contents {
    next_vhost_id: u64,
    vhosts: Vec<VhostEntry>,
    users: BTreeMap<String, (Arc<Value>, Arc<User>)>,
    parameters: BTreeMap<String, Value>,
    nodes: NodeList,
    record_level: u16,
}

/// The users, vhosts and parameters that items tell. Users whose item has not changed are those of `before`.
fn contents(items: &CommittedItems, before: &Followed) -> Result<Option<Contents>, String> {
    let mut next_vhost_id = None;
    let (mut vhosts, mut users, mut parameters) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    let (mut nodes, mut record_level) = (NodeList::default(), FIRST_RECORD_LEVEL);
    for (key, value) in &items.values {
        match key {
            ItemKey::NextVhostId => {
                next_vhost_id = Some(read(value, || "the id of the next vhost".to_owned())?);
            }
            ItemKey::Vhost(name) => vhosts.push(read(value, || format!("vhost '{name}'"))?),
            ItemKey::User(name) => {
                let known = before.users.get(name).filter(|(item, _)| Arc::ptr_eq(item, value));
                let user = match known {
                    Some((_, user)) => Arc::clone(user),
                    None => {
                        let user: StoredUser = read(value, || format!("user '{name}'"))?;
                        Arc::new(User::try_from(user)?)
                    }
                };
                users.insert(name.clone(), (Arc::clone(value), user));
            }
            ItemKey::Parameter(name) => {
                parameters.insert(name.clone(), Value::clone(value));
            }
            ItemKey::Node(name) => {
                nodes.0.insert(name.clone(), read(value, || format!("node '{name}'"))?);
            }
            ItemKey::RecordLevel => {
                record_level = read(value, || "the level of record kinds".to_owned())?;
            }
        }
    }
    let contents =
        |next_vhost_id| Contents { next_vhost_id, vhosts, users, parameters, nodes, record_level };
    Ok(next_vhost_id.map(contents))
}

/// The content of an item, which an error names: it has a member that this build does not know, or lacks one.
fn read<T: DeserializeOwned>(value: &Value, name: impl Fn() -> String) -> Result<T, String> {
    T::deserialize(value).map_err(|error| {
        let advice = "if a newer version of Leveret leads the cluster, upgrade this node";
        format!("{} cannot be read: {error}; {advice}", name())
    })
}

/// The changes that put all items of `after`, and remove the vhosts and users of `before` that are not in `after`.
fn changes(
    before: &BTreeMap<ItemKey, Arc<Value>>,
    after: BTreeMap<ItemKey, Value>,
) -> Vec<ItemChange> {
    let is_gone = |key: &&ItemKey| {
        matches!(key, ItemKey::Vhost(_) | ItemKey::User(_)) && !after.contains_key(*key)
    };
    let gone = before.keys().filter(is_gone).cloned();
    let mut changes: Vec<ItemChange> = gone.map(|key| ItemChange { key, value: None }).collect();
    changes.extend(after.into_iter().map(|(key, value)| ItemChange { key, value: Some(value) }));
    changes
}

/// The items of vhosts and users.
fn items_of(next_vhost_id: u64, vhosts: &[VhostEntry], users: &Users) -> BTreeMap<ItemKey, Value> {
    let ids = (ItemKey::NextVhostId, Value::from(next_vhost_id));
    let vhosts = vhosts.iter().map(vhost_item);
    let users = users
        .iter()
        .map(|(name, user)| (ItemKey::User(name.clone()), item_value(&StoredUser::from(&**user))));
    [ids].into_iter().chain(vhosts).chain(users).collect()
}

/// The item of a vhost.
fn vhost_item(vhost: &VhostEntry) -> (ItemKey, Value) {
    (ItemKey::Vhost(vhost.name.clone()), item_value(vhost))
}

/// The items of nodes.
fn node_items(nodes: &NodeList) -> impl Iterator<Item = (ItemKey, Value)> {
    nodes.0.iter().map(|(name, node)| (ItemKey::Node(name.clone()), item_value(node)))
}

pub(super) fn unable(error: &MetadataError) -> ChangeError {
    ChangeError::Unable(error.to_string())
}

impl Node {
    /// Lets the committed metadata take effect on this node. The node that leads a group without any items proposes
    /// its own.
    ///
    /// # Errors
    /// A sentence: something does not take effect yet.
    pub(crate) fn follow_metadata(&self) -> Result<(), String> {
        let Some(metadata) = &self.metadata else { return Ok(()) };
        let _one_at_a_time = self.changes.lock();
        self.settle_metadata(metadata)
    }

    /// Checks that this node makes the changes of the metadata, and lets all earlier ones take effect.
    ///
    /// # Errors
    /// [`ChangeError::Unable`] with the node that leads.
    pub(super) fn begin_change_of_metadata(&self) -> Result<(), ChangeError> {
        let Some(metadata) = &self.metadata else { return Ok(()) };
        metadata.store.change(Vec::new()).map_err(|error| unable(&error))?;
        self.settle_metadata(metadata).map_err(ChangeError::Unable)
    }

    /// Proposes users and vhosts, and lets them take effect once a majority has them.
    ///
    /// # Errors
    /// [`ChangeError::Unable`].
    pub(super) fn commit_in_cluster(
        &self,
        metadata: &NodeMetadata,
        desired: &Desired,
    ) -> Result<(), ChangeError> {
        let (mut next_vhost_id, known) = self.vhosts.entries();
        let known: BTreeMap<&str, &VhostEntry> =
            known.iter().map(|entry| (&*entry.name, entry)).collect();
        let first_new_id = next_vhost_id;
        let entries = desired.vhosts.iter().map(|(name, settings)| {
            let (name, settings) = (name.clone(), Arc::clone(settings));
            match known.get(&*name) {
                Some(known) => {
                    let mut entry = VhostEntry { settings, ..VhostEntry::clone(known) };
                    if let Some(named) = desired.placements.get(&name) {
                        entry.placement = Some(Arc::clone(named));
                    }
                    entry
                }
                None => {
                    next_vhost_id += 1;
                    let placement = settings.replicas.map(|_| Arc::default());
                    let (id, voters) = (VhostId(next_vhost_id - 1), Vec::new());
                    VhostEntry { name, id, settings, voters, placement }
                }
            }
        });
        let mut entries: Vec<VhostEntry> = entries.collect();
        if let Some(links) = &self.cluster {
            self.place(&mut entries, &links.nodes());
        }
        for new in entries.iter_mut().filter(|entry| entry.id.0 >= first_new_id) {
            new.voters = self.first_voters(new.placement.as_deref());
        }
        let after = items_of(next_vhost_id, &entries, &desired.users);
        let before = metadata.store.committed().map(|items| items.values).unwrap_or_default();
        metadata.store.change(changes(&before, after)).map_err(|error| unable(&error))?;
        self.settle_everywhere(metadata).map_err(ChangeError::Unable)
    }

    /// Lets a change of this node take effect on all nodes that are connected.
    pub(super) fn settle_everywhere(&self, metadata: &NodeMetadata) -> Result<(), String> {
        self.settle_metadata(metadata)?;
        if let Some(links) = &self.cluster {
            metadata.wait_for_peers(links, links.followed.load(Ordering::Acquire));
        }
        Ok(())
    }

    /// Sets global parameters, all or none; true if one of them is new.
    ///
    /// # Errors
    /// [`ChangeError::Invalid`] if they are too large, or [`ChangeError::Unable`].
    pub(crate) fn set_parameters(&self, new: Vec<(String, Value)>) -> Result<bool, ChangeError> {
        let _one_at_a_time = self.changes.lock();
        self.begin_change_of_metadata()?;
        self.global_parameters.check_room(&new).map_err(|(_, text)| ChangeError::Invalid(text))?;
        let is_new = new.iter().any(|(name, _)| !self.global_parameters.has(name));
        self.put_parameters(new.into_iter().map(|(name, value)| (name, Some(value))).collect())?;
        Ok(is_new)
    }

    /// Removes a global parameter; false if it does not exist.
    ///
    /// # Errors
    /// [`ChangeError::Unable`].
    pub(crate) fn clear_parameter(&self, name: String) -> Result<bool, ChangeError> {
        let _one_at_a_time = self.changes.lock();
        self.begin_change_of_metadata()?;
        if !self.global_parameters.has(&name) {
            return Ok(false);
        }
        self.put_parameters(vec![(name, None)])?;
        Ok(true)
    }

    /// Gives global parameters these values, or removes them, durably and in one step.
    fn put_parameters(&self, changed: Vec<(String, Option<Value>)>) -> Result<(), ChangeError> {
        let Some(metadata) = &self.metadata else {
            let written = self.global_parameters.put(changed);
            return written.map_err(|error| ChangeError::Unable(error.to_string()));
        };
        let change = |(name, value)| ItemChange { key: ItemKey::Parameter(name), value };
        let changes = changed.into_iter().map(change).collect();
        metadata.store.change(changes).map_err(|error| unable(&error))?;
        self.settle_everywhere(metadata).map_err(ChangeError::Unable)
    }

    fn settle_metadata(&self, metadata: &NodeMetadata) -> Result<(), String> {
        // The leader settles once a majority has its changes.
        let Some(mut items) = metadata.store.committed() else { return Ok(()) };
        let mut followed = metadata.followed.lock();
        // A log that was just opened knows less to be committed than has taken effect.
        let is_older = metadata.position().is_some_and(|position| items.last.0 < position);
        if followed.version == items.version || is_older {
            return Ok(());
        }
        let mut told = contents(&items, &followed)?;
        if told.is_none() && items.is_leading {
            self.found_metadata(metadata).map_err(|error| error.to_string())?;
            let Some(founded) = metadata.store.committed() else { return Ok(()) };
            items = founded;
            told = contents(&items, &followed)?;
        }
        if let Some((links, nodes)) =
            self.cluster.as_ref().and_then(|links| Some((links, links.nodes_due()?)))
        {
            // This node goes on without the others, which the metadata still list.
            if !items.is_leading {
                return Ok(());
            }
            let Some(told_before) = told else { return Ok(()) };
            let Contents { next_vhost_id, vhosts, .. } = told_before;
            let items_due = node_items(&nodes).chain(self.alone(next_vhost_id, vhosts, &nodes));
            let due = items_due.map(|(key, value)| ItemChange { key, value: Some(value) });
            metadata.store.change(due.collect()).map_err(|error| error.to_string())?;
            links.nodes_are_listed().map_err(|error| error.to_string())?;
            let Some(listed) = metadata.store.committed() else { return Ok(()) };
            items = listed;
            told = contents(&items, &followed)?;
        }
        if let Some(contents) = told {
            followed.users.clone_from(&contents.users);
            self.settle_contents(metadata, contents, items.last.0)?;
        }
        followed.version = items.version;
        if let Some(links) = &self.cluster {
            links.tell_followed(items.last.0);
        }
        Ok(())
    }

    /// The items of vhosts that change where this node goes on alone: all are on it, and the groups of those that it has
    /// not begun yet begin with it. Vhosts that only other nodes had are other ones from now on.
    fn alone(
        &self,
        next_vhost_id: u64,
        vhosts: Vec<VhostEntry>,
        nodes: &NodeList,
    ) -> impl Iterator<Item = (ItemKey, Value)> {
        let mut after = vhosts.clone();
        let mut next_id = self.vhosts.entries().0.max(next_vhost_id);
        for vhost in &mut after {
            let is_here = vhost.is_on(&self.identity.name);
            if !is_here && !vhost_files::has_log(&self.disk.data_dir, vhost.id) {
                tracing::warn!(
                    vhost = vhost.name,
                    "the vhost was on other nodes alone: it begins empty"
                );
                (vhost.id, vhost.placement) = (VhostId(next_id), Some(Arc::default()));
                next_id += 1;
            }
        }
        self.place(&mut after, nodes);
        for vhost in &mut after {
            if self.vhosts.get(&vhost.name).is_none_or(|handle| handle.id() != vhost.id) {
                vhost.voters = self.first_voters(vhost.placement.as_deref());
            }
        }
        let changed = after.into_iter().zip(vhosts).filter(|(after, before)| after != before);
        let ids = (ItemKey::NextVhostId, Value::from(next_id));
        [ids].into_iter().chain(changed.map(|(after, _)| vhost_item(&after)))
    }

    /// The change that gives a node a place in the list, or another one, and vhosts their nodes.
    pub(super) fn node_changes(&self, name: &str, node: &ListedNode) -> Vec<ItemChange> {
        let mut nodes = match &self.cluster {
            Some(links) => NodeList::clone(&links.nodes()),
            None => NodeList::default(),
        };
        nodes.0.insert(name.to_owned(), node.clone());
        let (_, before) = self.vhosts.entries();
        let mut after = before.clone();
        self.place(&mut after, &nodes);
        let changed = after.iter().zip(&before).filter(|(after, before)| after != before);
        let node = (ItemKey::Node(name.to_owned()), item_value(node));
        let items = [node].into_iter().chain(changed.map(|(after, _)| vhost_item(after)));
        items.map(|(key, value)| ItemChange { key, value: Some(value) }).collect()
    }

    /// Proposes the users, vhosts and parameters of this node, which leads a group without any.
    fn found_metadata(&self, metadata: &NodeMetadata) -> Result<(), MetadataError> {
        let (next_vhost_id, vhosts) = self.vhosts.entries();
        let mut items = items_of(next_vhost_id, &vhosts, &self.auth.to_change());
        let name = (ItemKey::Parameter("cluster_name".to_owned()), self.cluster_name().into());
        items.extend([name]);
        let parameters = self.global_parameters.all().into_iter();
        items.extend(parameters.map(|(name, value)| (ItemKey::Parameter(name), value)));
        items.extend(node_items(&self.founders()));
        metadata.store.change(changes(&BTreeMap::new(), items))?;
        tracing::info!("the cluster begins with the users, vhosts and parameters of this node");
        Ok(())
    }

    /// Lets users, vhosts and parameters take effect.
    fn settle_contents(
        &self,
        metadata: &NodeMetadata,
        contents: Contents,
        position: u64,
    ) -> Result<(), String> {
        let Contents { next_vhost_id, vhosts: entries, users, parameters, nodes, record_level } =
            contents;
        // First, because what follows may be of that level.
        self.settle_record_level(record_level)?;
        // Before the vhosts, which may begin on new nodes.
        self.settle_nodes(&nodes, position).map_err(|error| error.to_string())?;
        self.vhosts.reserve_ids(next_vhost_id);
        self.global_parameters.replace(parameters).map_err(|error| error.to_string())?;
        let was_followed = metadata.position().is_some();
        // Members of vhosts that were on a lost disk have voted, and a cluster that this node joins has begun them: those
        // that its start has begun must not take part.
        let is_new_here = !was_followed && self.is_newcomer();
        let is_wanted = |handle: &Arc<VhostHandle>| {
            !is_new_here
                && entries
                    .iter()
                    .any(|entry| entry.id == handle.id() && entry.name == handle.name())
        };
        let gone: Vec<Arc<VhostHandle>> =
            self.vhosts.all().into_iter().filter(|handle| !is_wanted(handle)).collect();
        let mut gone: Vec<Arc<VhostHandle>> = if was_followed {
            // Another vhost takes the place of one whose name is still wanted.
            let is_nameless = |handle: &&Arc<VhostHandle>| {
                entries.iter().all(|entry| entry.name != handle.name())
            };
            let gone = gone.iter().filter(is_nameless);
            // A handle is another one if the replica was opened anew meanwhile.
            gone.filter_map(|handle| self.vhosts.remove(handle.name())).collect()
        } else {
            // Vhosts of the cluster may have their ids, and so the names of their directories.
            gone.iter().try_for_each(|handle| self.set_aside(handle))?;
            Vec::new()
        };
        self.settle_placements(&entries)?;
        let mut made = Vec::new();
        for entry in &entries {
            if self.vhosts.get(&entry.name).is_none_or(|handle| handle.id() != entry.id) {
                let age = if is_new_here { GroupAge::OnLostDisk } else { GroupAge::New };
                let handle = self.vhosts.begin(VhostDefinition::new(entry.clone()), age);
                made.push(handle.map_err(|error| error.to_string())?);
            }
        }
        let users: Users = users.into_iter().map(|(name, (_, user))| (name, user)).collect();
        let settings =
            entries.iter().map(|entry| (entry.name.clone(), Arc::clone(&entry.settings)));
        let vhosts = settings.collect();
        // At once, because a new vhost may lead already. The log has everything that `node.json` lacks.
        gone.extend(self.settle(users.clone(), &vhosts, &made));
        *metadata.position.lock() = Some(position);
        let written = self.write_down(next_vhost_id, entries, &users);
        let ends = |handle| match &written {
            Ok(()) => self.discard(handle),
            // The next start removes the files, once the list without the vhost is written.
            Err(_) => self.close_deleted(handle),
        };
        gone.iter().for_each(ends);
        written.map_err(|error| error.to_string())?;
        if let Some(replication) = &self.replication {
            replication.replicator.take_part();
        }
        Ok(())
    }

    /// Closes a vhost that this node had before it was one of the cluster, and keeps its files under another name.
    ///
    /// # Errors
    /// A sentence: the files have their name still.
    fn set_aside(&self, handle: &Arc<VhostHandle>) -> Result<(), String> {
        let vhost = handle.name();
        self.close_deleted(handle);
        let path =
            vhost_files::set_aside(&self.disk.data_dir, handle.id()).map_err(|error| {
                format!("the files of vhost '{vhost}', which the cluster does not have, cannot be renamed: {error}")
            })?;
        self.vhosts.remove(vhost);
        tracing::warn!(
            vhost,
            path = %path.display(),
            "the vhost gives way to those of the cluster: its files are kept, and not used"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use storage::Lsn;

    use super::*;

    fn read_item(key: &ItemKey, value: Value) -> Result<Option<Contents>, String> {
        let first = (ItemKey::NextVhostId, Arc::new(json!(2)));
        let values = [first, (key.clone(), Arc::new(value))].into();
        let items = CommittedItems { version: 1, values, last: Lsn(1), is_leading: false };
        contents(&items, &Followed::default())
    }

    #[test]
    fn item_that_is_not_as_this_build_writes_it_is_refused_by_name() {
        let (vhost, user) = (ItemKey::Vhost("v".to_owned()), ItemKey::User("anna".to_owned()));
        let node = ItemKey::Node("a@h".to_owned());
        let listed =
            |disk| json!({"host": "h", "port": 1, "disk": disk, "joins": 0, "forgotten": false});
        assert!(read_item(&node, listed("0000000000000001")).is_ok());
        for (key, value, problem) in [
            (&ItemKey::NextVhostId, json!("2"), "the id of the next vhost cannot be read: invalid"),
            (&ItemKey::RecordLevel, json!(65_536), "the level of record kinds cannot be read: inv"),
            (&vhost, json!({"name": "v", "id": 1, "colour": 1}), "vhost 'v' cannot be read: unkn"),
            (&vhost, json!({"name": "v"}), "vhost 'v' cannot be read: missing field `id`"),
            (&user, json!({"name": "anna"}), "user 'anna' cannot be read: missing field `passwo"),
            (&node, listed("1"), "node 'a@h' cannot be read: \"1\" is not the id of a disk"),
        ] {
            let said = read_item(key, value).unwrap_err();
            assert!(said.starts_with(problem) && said.ends_with("upgrade this node"), "{said}");
        }
    }
}
