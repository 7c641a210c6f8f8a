//! `node.json`: the persistent state of the node itself. Vhosts with their ids, settings and limits, users
//! with their password hashes, permissions and limits. The file is replaced as a whole, durably, on every
//! change. A checksum protects it, because a permission with one changed letter would still be readable.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use broker::QueueType;
use broker::access::{PermissionPattern, Permissions};
use replication::MemberId;
use serde_json::{Value, json};

use crate::auth::password::PasswordHash;
use crate::auth::{TopicPattern, User};
use crate::disk::json_files::sealed_json::{self, SealedObject};
use crate::disk::private_files;
use crate::disk::vhost_files::VhostId;
use crate::json::limits::{limits_from_json, limits_to_json};
use crate::metadata::placement::Placement;
use crate::requests::VhostSettings;

const NAME: &str = "node.json";
/// The file of a backup that is being written. It is renamed when everything else is durable.
pub(crate) const INCOMPLETE_BACKUP: &str = "backup.json.new";
/// Format 1 had no settings and limits, and vhosts could not be deleted.
const FORMAT: u64 = 2;
/// The key of the position in the log of the metadata of a cluster.
const FOLLOWED: &str = "metadata_position";

/// The contents of the file.
#[derive(Default, Debug)]
pub(crate) struct NodeFile {
    /// An id that is greater than those of all vhosts so far.
    pub(crate) next_vhost_id: u64,
    /// Vhosts, sorted by name.
    pub(crate) vhosts: Vec<VhostEntry>,
    pub(crate) users: Vec<Arc<User>>,
    /// Position of the log of the metadata of a cluster that the contents are those of; none if they are the node's own.
    pub(crate) followed: Option<u64>,
}

/// A vhost in the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct VhostEntry {
    pub(crate) name: String,
    pub(crate) id: VhostId,
    pub(crate) settings: Arc<VhostSettings>,
    /// In a cluster, the members with which its group has begun; none if these are the founders of the cluster.
    pub(crate) voters: Vec<MemberId>,
    /// In a cluster, the nodes that have the vhost; none for all.
    pub(crate) placement: Option<Arc<Placement>>,
}

impl VhostEntry {
    /// True if a node is one of those that have the vhost.
    pub(crate) fn is_on(&self, node: &str) -> bool {
        self.placement.as_ref().is_none_or(|placement| placement.has(node))
    }
}

/// Id of the first vhost.
pub(crate) const FIRST_VHOST_ID: u64 = 1;

/// The reason why the file cannot be used.
#[derive(thiserror::Error, Debug)]
pub(crate) enum NodeFileError {
    #[error("cannot read {path}: {error}")]
    Read { path: PathBuf, error: io::Error },
    /// Writing failed; the old file is intact.
    #[error("cannot write {path}: {error}")]
    Write { path: PathBuf, error: io::Error },
    /// Replacing failed; either the old or the new file is there.
    #[error("cannot replace {path}: {error}")]
    Replace { path: PathBuf, error: io::Error },
    #[error("{path} is damaged: {problem}")]
    Damaged { path: PathBuf, problem: String },
    #[error("{path} is missing, though there are vhosts; nothing is changed")]
    Missing { path: PathBuf },
    #[error("{path} holds a backup that was not completed; nothing is changed")]
    IncompleteBackup { path: PathBuf },
    #[error("{path} has format version {version}, but this Leveret knows version {FORMAT}")]
    Version { path: PathBuf, version: u64 },
}

/// Reads the file of a data directory; none if it is new.
///
/// # Errors
/// [`NodeFileError`], a sentence for the operator.
pub(crate) fn read(data_dir: &Path) -> Result<Option<NodeFile>, NodeFileError> {
    let path = data_dir.join(NAME);
    if data_dir.join(INCOMPLETE_BACKUP).exists() {
        return Err(NodeFileError::IncompleteBackup { path: data_dir.to_owned() });
    }
    let text = match sealed_json::read(&path) {
        Ok(Some(text)) => text,
        Ok(None) => {
            // The file is written before the first vhost is created.
            let has_vhosts = data_dir.join("vhosts").is_dir();
            return if has_vhosts { Err(NodeFileError::Missing { path }) } else { Ok(None) };
        }
        Err(error) => return Err(NodeFileError::Read { path, error }),
    };
    let damaged = |problem: String| NodeFileError::Damaged { path: path.clone(), problem };
    let sealed = SealedObject::parse(&text).map_err(damaged)?;
    let version = sealed.format().map_err(damaged)?;
    if !matches!(version, 1 | FORMAT) {
        return Err(NodeFileError::Version { path, version });
    }
    let root = sealed.open().map(Value::Object).map_err(damaged)?;
    parse(&root)
        .ok_or_else(|| damaged("something in it is missing or of the wrong type".to_owned()))
        .map(Some)
}

/// True if the file of a data directory, which was read, has the first format. Builds that wrote this format
/// kept no other files of the node.
pub(crate) fn has_first_format(data_dir: &Path) -> bool {
    let text = std::fs::read(data_dir.join(NAME)).unwrap_or_default();
    serde_json::from_slice::<Value>(&text).is_ok_and(|root| root["format"] == 1)
}

fn parse(root: &Value) -> Option<NodeFile> {
    let vhosts: Vec<VhostEntry> = all(root.get("vhosts")?, vhost)?;
    let users = all(root.get("users")?, |value| user(value).map(Arc::new))?;
    let next_vhost_id = match root.get("next_vhost_id") {
        Some(id) => id.as_u64()?,
        None => vhosts.iter().map(|vhost| vhost.id.0 + 1).max().unwrap_or(FIRST_VHOST_ID),
    };
    let followed = match root.get(FOLLOWED) {
        Some(position) => Some(position.as_u64()?),
        None => None,
    };
    Some(NodeFile { next_vhost_id, vhosts, users, followed })
}

/// Parses every item of a list; none if any item is invalid.
fn all<T>(list: &Value, item: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    list.as_array()?.iter().map(item).collect()
}

/// The vhost of an item; none if the item is not that of a vhost.
pub(crate) fn vhost(value: &Value) -> Option<VhostEntry> {
    let settings = match value.get("settings") {
        Some(settings) => vhost_settings(settings)?,
        None => VhostSettings::default(),
    };
    let id = VhostId(value.get("id")?.as_u64()?);
    let voters = match value.get("voters") {
        Some(voters) => all(voters, |voter| MemberId::new(voter.as_u64()?))?,
        None => Vec::new(),
    };
    let placement = match value.get("placement") {
        Some(placement) => Some(Arc::new(Placement::from_json(placement)?)),
        None => None,
    };
    let (name, settings) = (text(value, "name")?, Arc::new(settings));
    Some(VhostEntry { name, id, settings, voters, placement })
}

fn vhost_settings(value: &Value) -> Option<VhostSettings> {
    let queue_type = text(value, "default_queue_type")?;
    let protected = value.get("protected_from_deletion")?;
    Some(VhostSettings {
        description: text(value, "description")?,
        tags: texts(value.get("tags")?)?,
        default_queue_type: QueueType::parse(queue_type.as_bytes())?,
        protected_from_deletion: if protected.is_null() {
            None
        } else {
            Some(protected.as_bool()?)
        },
        tracing: value.get("tracing")?.as_bool()?,
        replicas: match value.get("replicas") {
            Some(replicas) => Some(u8::try_from(replicas.as_u64()?).ok()?),
            None => None,
        },
        limits: limits_from_json(value.get("limits")?.as_object()?, "limits").ok()?,
    })
}

fn texts(list: &Value) -> Option<Vec<String>> {
    all(list, |text| text.as_str().map(str::to_owned))
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

/// The user of an item; none if the item is not that of a user.
pub(crate) fn user(value: &Value) -> Option<User> {
    let hash = STANDARD.decode(text(value, "password_hash")?).ok()?;
    let password = PasswordHash::from_bytes(&hash, &text(value, "hashing_algorithm")?).ok()?;
    let mut user = User::new(&text(value, "name")?, password, texts(value.get("tags")?)?);
    if let Some(object) = value.get("limits") {
        user.limits = limits_from_json(object.as_object()?, "user-limits").ok()?;
    }
    for permission in value.get("permissions")?.as_array()? {
        let pattern = |key| Some(PermissionPattern::stored(&text(permission, key)?));
        let permissions = Permissions {
            configure: pattern("configure")?,
            write: pattern("write")?,
            read: pattern("read")?,
        };
        tell_unusable(&user.name, &permissions);
        user.permissions.insert(text(permission, "vhost")?, permissions);
    }
    for permission in value.get("topic_permissions")?.as_array()? {
        let pattern = TopicPattern {
            exchange: text(permission, "exchange")?,
            write: text(permission, "write")?,
            read: text(permission, "read")?,
        };
        user.topic_permissions.entry(text(permission, "vhost")?).or_default().push(pattern);
    }
    Some(user)
}

/// Logs patterns that were accepted before and exceed a bound now.
fn tell_unusable(user: &str, permissions: &Permissions) {
    let Permissions { configure, write, read } = permissions;
    for (permission, pattern) in [("configure", configure), ("write", write), ("read", read)] {
        if let Some(problem) = pattern.problem() {
            let pattern = pattern.as_str();
            tracing::warn!(user, permission, pattern, problem, "a permission allows nothing");
        }
    }
}

/// Replaces the file of a data directory, durably.
///
/// # Errors
/// [`NodeFileError::Write`] or [`NodeFileError::Replace`].
pub(crate) fn write(data_dir: &Path, contents: &NodeFile) -> Result<(), NodeFileError> {
    let NodeFile { next_vhost_id, vhosts, users, followed } = contents;
    let vhosts: Vec<Value> = vhosts.iter().map(vhost_value).collect();
    let users: Vec<Value> = users.iter().map(|user| user_value(user)).collect();
    let mut root = json!({
        "format": FORMAT,
        "next_vhost_id": next_vhost_id,
        "vhosts": vhosts,
        "users": users,
    });
    if let Some(position) = followed {
        root[FOLLOWED] = Value::from(*position);
    }
    replace(data_dir, NAME, &sealed_json::text(root, true))
}

/// Replaces a file of a data directory, durably.
///
/// # Errors
/// [`NodeFileError::Write`]: the old file is there. [`NodeFileError::Replace`]: the old or the new file is
/// there.
pub(crate) fn replace(data_dir: &Path, name: &str, text: &str) -> Result<(), NodeFileError> {
    let (path, new) = (data_dir.join(name), data_dir.join(format!("{name}.new")));
    if let Err(error) = write_new(&new, text) {
        return Err(NodeFileError::Write { path, error });
    }
    let replaced = std::fs::rename(&new, &path).and_then(|()| File::open(data_dir)?.sync_all());
    replaced.map_err(|error| NodeFileError::Replace { path, error })
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = private_files::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// The item of a vhost.
pub(crate) fn vhost_value(vhost: &VhostEntry) -> Value {
    let settings = &vhost.settings;
    let mut value = json!({
        "name": vhost.name,
        "id": vhost.id.0,
        "settings": {
            "description": settings.description,
            "tags": settings.tags,
            "default_queue_type": settings.default_queue_type.as_str(),
            "protected_from_deletion": settings.protected_from_deletion,
            "tracing": settings.tracing,
            "limits": limits_to_json(&settings.limits),
        },
    });
    if !vhost.voters.is_empty() {
        value["voters"] = vhost.voters.iter().map(|voter| voter.get()).collect();
    }
    if let Some(replicas) = settings.replicas {
        value["settings"]["replicas"] = Value::from(replicas);
    }
    if let Some(placement) = &vhost.placement {
        value["placement"] = placement.to_json();
    }
    value
}

/// The item of a user.
pub(crate) fn user_value(user: &User) -> Value {
    let (hash, algorithm) = user.password.to_bytes();
    let permissions: Vec<Value> = user
        .permissions
        .iter()
        .map(|(vhost, Permissions { configure, write, read })| {
            json!({
                "vhost": vhost,
                "configure": configure.as_str(),
                "write": write.as_str(),
                "read": read.as_str(),
            })
        })
        .collect();
    let topics = user.topic_permissions.iter().flat_map(|(vhost, patterns)| {
        patterns.iter().map(move |TopicPattern { exchange, write, read }| {
            json!({"vhost": vhost, "exchange": exchange, "write": write, "read": read})
        })
    });
    json!({
        "name": user.name,
        "password_hash": STANDARD.encode(hash),
        "hashing_algorithm": algorithm,
        "tags": user.tags,
        "permissions": permissions,
        "topic_permissions": topics.collect::<Vec<Value>>(),
        "limits": limits_to_json(&user.limits),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::requests::{UserLimit, VhostLimit};

    use super::*;

    fn folder(test: &str) -> PathBuf {
        let name = format!("leveret-node-file-{test}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn contents() -> NodeFile {
        let password = PasswordHash::new(b"secret").unwrap();
        let mut user = User::new("anna", password, vec!["management".to_owned()]);
        let pattern = |text| PermissionPattern::new(text).unwrap();
        let permissions =
            Permissions { configure: pattern(""), write: pattern("^a"), read: pattern(".*") };
        user.permissions.insert("/".to_owned(), permissions);
        let topic = TopicPattern {
            exchange: "amq.topic".to_owned(),
            write: "^{username}".to_owned(),
            read: ".*".to_owned(),
        };
        user.topic_permissions.insert("/".to_owned(), vec![topic]);
        user.limits.insert(UserLimit::MaxChannels, 5);
        let settings = VhostSettings {
            description: "d".to_owned(),
            tags: vec!["t".to_owned()],
            default_queue_type: QueueType::Quorum,
            protected_from_deletion: Some(true),
            tracing: true,
            replicas: Some(2),
            limits: BTreeMap::from([(VhostLimit::MaxQueues, -1)]),
        };
        let entry = |name: &str, id, settings| VhostEntry {
            name: name.to_owned(),
            id: VhostId(id),
            settings: Arc::new(settings),
            voters: (1..id).filter_map(|id| MemberId::new(id << 16 | 1)).collect(),
            placement: (id > 1).then(|| Arc::new(Placement::on_all(&["a@h".to_owned()]))),
        };
        NodeFile {
            next_vhost_id: 9,
            vhosts: vec![entry("/", 1, VhostSettings::default()), entry("other", 7, settings)],
            users: vec![Arc::new(user)],
            followed: Some(77),
        }
    }

    #[test]
    fn node_file_reads_back() {
        let folder = folder("back");
        assert!(read(&folder).unwrap().is_none());
        let contents = contents();
        write(&folder, &contents).unwrap();
        let back = read(&folder).unwrap().unwrap();
        assert_eq!((back.next_vhost_id, &back.vhosts), (9, &contents.vhosts));
        assert_eq!(back.followed, Some(77));
        let [again] = &back.users[..] else { panic!("one user") };
        assert!(again.password.verify(b"secret"));
        assert_eq!(user_value(again), user_value(&contents.users[0]));
        let text = std::fs::read_to_string(folder.join(NAME)).unwrap();
        for at in text.char_indices().map(|(at, _)| at) {
            let mut changed = text.clone().into_bytes();
            changed[at] ^= 1;
            std::fs::write(folder.join(NAME), &changed).unwrap();
            let is_space = text.as_bytes()[at].is_ascii_whitespace();
            assert!(read(&folder).is_err() || is_space, "byte {at}");
        }
        std::fs::write(folder.join(NAME), "{\"format\": 3}").unwrap();
        assert!(matches!(read(&folder), Err(NodeFileError::Version { version: 3, .. })));
        std::fs::write(folder.join(NAME), "{\"format\": 2, \"vho").unwrap();
        assert!(matches!(read(&folder), Err(NodeFileError::Damaged { .. })));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn format_1_is_read() {
        let folder = folder("older");
        let root = json!({
            "format": 1,
            "vhosts": [{"name": "/", "id": 1}, {"name": "v", "id": 4}],
            "users": [{"name": "anna", "password_hash": "", "tags": [], "permissions": [],
                "hashing_algorithm": "rabbit_password_hashing_sha256", "topic_permissions": []}],
        });
        std::fs::write(folder.join(NAME), sealed_json::text(root, false)).unwrap();
        let NodeFile { next_vhost_id, vhosts, users, .. } = read(&folder).unwrap().unwrap();
        assert_eq!(next_vhost_id, 5);
        assert_eq!(vhosts.iter().map(|vhost| vhost.id.0).collect::<Vec<_>>(), [1, 4]);
        assert_eq!(*vhosts[1].settings, VhostSettings::default());
        assert!(users[0].limits.is_empty() && users[0].name == "anna");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
