//! `node.json`: the persistent state of the node itself. Vhosts with their ids, settings and limits, users
//! with their password hashes, permissions and limits. The file is replaced as a whole, durably, on every
//! change. A checksum protects it, because a permission with one changed letter would still be readable.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use replication::MemberId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::auth::User;
use crate::disk::json_files::members::optional;
use crate::disk::json_files::sealed_json::{self, SealedError, SealedObject};
use crate::disk::json_files::stored_user::StoredUser;
use crate::disk::json_files::stored_vhost::{settings, voters};
use crate::disk::private_files;
use crate::disk::vhost_files::VhostId;
use crate::membership::placement::Placement;
use crate::requests::VhostSettings;

const NAME: &str = "node.json";
/// The file of a backup that is being written. It is renamed when everything else is durable.
pub(crate) const INCOMPLETE_BACKUP: &str = "backup.json.new";
/// Format 1 had no settings and limits, and vhosts could not be deleted.
const FORMAT: u64 = 2;

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

/// The members of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Members<'a> {
    /// Missing in format 1 alone.
    #[serde(default, deserialize_with = "optional")]
    next_vhost_id: Option<u64>,
    vhosts: Cow<'a, [VhostEntry]>,
    users: Vec<StoredUser>,
    /// Missing in files that follow no metadata.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional")]
    metadata_position: Option<u64>,
}

/// A vhost, as the file and the metadata have it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VhostEntry {
    pub(crate) name: String,
    pub(crate) id: VhostId,
    /// Missing in format 1.
    #[serde(default, with = "settings")]
    pub(crate) settings: Arc<VhostSettings>,
    /// In a cluster, the members with which its group has begun; none if these are the founders of the cluster.
    #[serde(default, with = "voters", skip_serializing_if = "Vec::is_empty")]
    pub(crate) voters: Vec<MemberId>,
    /// In a cluster, the nodes that have the vhost; none for all.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional")]
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
    #[error("{path} {error}")]
    Sealed { path: PathBuf, error: SealedError },
    #[error("{path} is missing, though there are vhosts; nothing is changed")]
    Missing { path: PathBuf },
    #[error("{path} holds a backup that was not completed; nothing is changed")]
    IncompleteBackup { path: PathBuf },
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
    parse(&text).map(Some).map_err(|error| NodeFileError::Sealed { path, error })
}

/// True if the file of a data directory, which was read, has the first format. Builds that wrote this format
/// kept no other files of the node.
pub(crate) fn has_first_format(data_dir: &Path) -> bool {
    let text = std::fs::read(data_dir.join(NAME)).unwrap_or_default();
    serde_json::from_slice::<Value>(&text).is_ok_and(|root| root["format"] == 1)
}

fn parse(text: &[u8]) -> Result<NodeFile, SealedError> {
    let (format, members) = sealed_json::open(text, 1..=FORMAT)?;
    let Members { next_vhost_id, vhosts, users, metadata_position } = members;
    let after_all = || vhosts.iter().map(|vhost| vhost.id.0 + 1).max().unwrap_or(FIRST_VHOST_ID);
    let next_vhost_id = match next_vhost_id {
        Some(id) => id,
        None if format == 1 => after_all(),
        // A deleted vhost may have had the next id, and left files.
        None => return Err(SealedError::Content("missing field `next_vhost_id`".to_owned())),
    };
    let users = users.into_iter().map(|user| User::try_from(user).map(Arc::new));
    let users = users.collect::<Result<_, _>>().map_err(SealedError::Content)?;
    let vhosts = vhosts.into_owned();
    Ok(NodeFile { next_vhost_id, vhosts, users, followed: metadata_position })
}

/// Replaces the file of a data directory, durably.
///
/// # Errors
/// [`NodeFileError::Write`] or [`NodeFileError::Replace`].
pub(crate) fn write(data_dir: &Path, contents: &NodeFile) -> Result<(), NodeFileError> {
    let NodeFile { next_vhost_id, vhosts, users, followed } = contents;
    let members = Members {
        next_vhost_id: Some(*next_vhost_id),
        vhosts: vhosts.into(),
        users: users.iter().map(|user| StoredUser::from(&**user)).collect(),
        metadata_position: *followed,
    };
    replace(
        data_dir,
        NAME,
        &sealed_json::text(&SealedObject { format: FORMAT, content: &members }, true),
    )
}

/// Replaces a file of a data directory, durably.
///
/// # Errors
/// [`NodeFileError::Write`]: the old file is there. [`NodeFileError::Replace`]: the old or the new file is
/// there.
pub(crate) fn replace(data_dir: &Path, name: &str, text: &str) -> Result<(), NodeFileError> {
    let (path, new) = (data_dir.join(name), data_dir.join(format!("{name}.new")));
    // Durable before it has the name, so that the name never leads to a part of a file.
    if let Err(error) = write_new(&new, text) {
        return Err(NodeFileError::Write { path, error });
    }
    // The name is durable with the directory: until then, a power cut may bring the old file back.
    let replaced = std::fs::rename(&new, &path).and_then(|()| File::open(data_dir)?.sync_all());
    replaced.map_err(|error| NodeFileError::Replace { path, error })
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = private_files::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use broker::QueueType;
    use broker::access::{PermissionPattern, Permissions};
    use serde_json::json;

    use super::*;
    use crate::auth::TopicPattern;
    use crate::auth::password::PasswordHash;
    use crate::disk::json_files::members::item_value;
    use crate::requests::{UserLimit, VhostLimit};

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
        let value = |user: &User| item_value(&StoredUser::from(user));
        assert_eq!(value(again), value(&contents.users[0]));
        let text = std::fs::read_to_string(folder.join(NAME)).unwrap();
        for at in text.char_indices().map(|(at, _)| at) {
            let mut changed = text.clone().into_bytes();
            changed[at] ^= 1;
            std::fs::write(folder.join(NAME), &changed).unwrap();
            let is_space = text.as_bytes()[at].is_ascii_whitespace();
            assert!(read(&folder).is_err() || is_space, "byte {at}");
        }
        std::fs::write(folder.join(NAME), "{\"format\": 3}").unwrap();
        let problem = || match read(&folder) {
            Err(NodeFileError::Sealed { error, .. }) => error,
            other => panic!("{other:?}"),
        };
        assert_eq!(problem(), SealedError::Version { version: 3, known: 2 });
        std::fs::write(folder.join(NAME), "{\"format\": 2, \"vho").unwrap();
        assert!(matches!(problem(), SealedError::Damaged(_)));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn format_1_is_read() {
        let folder = folder("older");
        let mut root = json!({
            "format": 1,
            "vhosts": [{"name": "/", "id": 1}, {"name": "v", "id": 4}],
            "users": [{"name": "anna", "password_hash": "", "tags": [], "permissions": [],
                "hashing_algorithm": "rabbit_password_hashing_sha256", "topic_permissions": []}],
        });
        std::fs::write(folder.join(NAME), sealed_json::text(&root, false)).unwrap();
        let NodeFile { next_vhost_id, vhosts, users, .. } = read(&folder).unwrap().unwrap();
        assert_eq!(next_vhost_id, 5);
        assert_eq!(vhosts.iter().map(|vhost| vhost.id.0).collect::<Vec<_>>(), [1, 4]);
        assert_eq!(*vhosts[1].settings, VhostSettings::default());
        assert!(users[0].limits.is_empty() && users[0].name == "anna");
        // A later format has the next id.
        root["format"] = json!(2);
        std::fs::write(folder.join(NAME), sealed_json::text(&root, false)).unwrap();
        let error = read(&folder).unwrap_err().to_string();
        assert!(error.contains("missing field `next_vhost_id`"), "{error}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
