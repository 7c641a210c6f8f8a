//! `node.json`: what of the node itself outlives a restart. Vhosts with their ids, users with their
//! password hashes and permissions; replaced as a whole, durably, whenever it changes. It carries a
//! checksum: a permission of which one letter has changed is as readable as before.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use broker::access::{PermissionPattern, Permissions};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::auth::{TopicPattern, User};
use crate::password::PasswordHash;

const NAME: &str = "node.json";
const FORMAT: u64 = 1;
/// The key of the checksum: of everything else in the file, written without spaces.
const CHECKSUM: &str = "sha256";

/// What the file says.
#[derive(Default, Debug)]
pub(crate) struct NodeFile {
    /// Vhosts by name, with the ids that their directories have.
    pub(crate) vhosts: Vec<(String, u64)>,
    pub(crate) users: Vec<User>,
}

/// Why the file cannot be used.
#[derive(thiserror::Error, Debug)]
pub(crate) enum NodeFileError {
    #[error("cannot read {path}: {error}")]
    Read { path: PathBuf, error: io::Error },
    #[error("cannot write {path}: {error}")]
    Write { path: PathBuf, error: io::Error },
    #[error("{path} is damaged: {problem}")]
    Damaged { path: PathBuf, problem: String },
    #[error("{path} is missing, though there are vhosts; nothing is changed")]
    Missing { path: PathBuf },
    #[error("{path} has format version {version}, but this Leveret knows version {FORMAT}")]
    Version { path: PathBuf, version: u64 },
}

/// Reads the file of a data directory; none if it is new.
///
/// # Errors
/// [`NodeFileError`], a sentence for the operator.
pub(crate) fn read(data_dir: &Path) -> Result<Option<NodeFile>, NodeFileError> {
    let path = data_dir.join(NAME);
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // It is there before the first vhost is made.
            let has_vhosts = data_dir.join("vhosts").is_dir();
            return if has_vhosts { Err(NodeFileError::Missing { path }) } else { Ok(None) };
        }
        Err(error) => return Err(NodeFileError::Read { path, error }),
    };
    let damaged = |problem: String| NodeFileError::Damaged { path: path.clone(), problem };
    let mut root: Value =
        serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
    match root.get("format").and_then(Value::as_u64) {
        Some(FORMAT) => {}
        Some(version) => return Err(NodeFileError::Version { path, version }),
        None => return Err(damaged("'format' is missing".to_owned())),
    }
    let told = root.as_object_mut().and_then(|root| root.remove(CHECKSUM));
    if told != Some(Value::String(checksum(&root))) {
        return Err(damaged(format!("'{CHECKSUM}' does not fit what it says")));
    }
    parse(&root)
        .ok_or_else(|| damaged("something in it is missing or of the wrong type".to_owned()))
        .map(Some)
}

fn parse(root: &Value) -> Option<NodeFile> {
    let vhost = |vhost: &Value| Some((text(vhost, "name")?, vhost.get("id")?.as_u64()?));
    let vhosts = root.get("vhosts")?.as_array()?.iter().map(vhost).collect::<Option<_>>()?;
    let users = root.get("users")?.as_array()?.iter().map(user).collect::<Option<_>>()?;
    Some(NodeFile { vhosts, users })
}

/// What guards the file: the hash of what it says.
fn checksum(root: &Value) -> String {
    let hash = Sha256::digest(root.to_string().as_bytes());
    hash.iter().map(|octet| format!("{octet:02x}")).collect()
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

fn user(value: &Value) -> Option<User> {
    let hash = STANDARD.decode(text(value, "password_hash")?).ok()?;
    let password = PasswordHash::from_bytes(&hash, &text(value, "hashing_algorithm")?).ok()?;
    let tag = |tag: &Value| tag.as_str().map(str::to_owned);
    let tags = value.get("tags")?.as_array()?.iter().map(tag).collect::<Option<_>>()?;
    let mut user = User::new(&text(value, "name")?, password, tags);
    for permission in value.get("permissions")?.as_array()? {
        let pattern = |key| PermissionPattern::new(&text(permission, key)?).ok();
        let permissions = Permissions {
            configure: pattern("configure")?,
            write: pattern("write")?,
            read: pattern("read")?,
        };
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

/// Replaces the file of a data directory; when this returns it is durable.
///
/// # Errors
/// [`NodeFileError`]; the old file or the new one is there then.
pub(crate) fn write<'a>(
    data_dir: &Path,
    vhosts: impl Iterator<Item = (&'a str, u64)>,
    users: impl Iterator<Item = &'a User>,
) -> Result<(), NodeFileError> {
    let vhosts: Vec<Value> = vhosts.map(|(name, id)| json!({"name": name, "id": id})).collect();
    let users: Vec<Value> = users.map(user_value).collect();
    let mut root = json!({"format": FORMAT, "vhosts": vhosts, "users": users});
    root[CHECKSUM] = Value::String(checksum(&root));
    let path = data_dir.join(NAME);
    let result = replace(data_dir, &format!("{root:#}\n"));
    result.map_err(|error| NodeFileError::Write { path, error })
}

fn replace(data_dir: &Path, text: &str) -> io::Result<()> {
    let new = data_dir.join("node.json.new");
    let mut file = File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&new, data_dir.join(NAME))?;
    File::open(data_dir)?.sync_all()
}

fn user_value(user: &User) -> Value {
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
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_back() {
        let folder = std::env::temp_dir().join(format!("leveret-node-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        assert!(read(&folder).unwrap().is_none());
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
        write(&folder, [("/", 1), ("other", 7)].into_iter(), [&user].into_iter()).unwrap();
        let back = read(&folder).unwrap().unwrap();
        assert_eq!(back.vhosts, [("/".to_owned(), 1), ("other".to_owned(), 7)]);
        let [again] = &back.users[..] else { panic!("one user") };
        assert!(again.password.verify(b"secret"));
        assert_eq!(user_value(again), user_value(&user));
        let text = std::fs::read_to_string(folder.join(NAME)).unwrap();
        for at in text.char_indices().map(|(at, _)| at) {
            let mut changed = text.clone().into_bytes();
            changed[at] ^= 1;
            std::fs::write(folder.join(NAME), &changed).unwrap();
            let is_space = text.as_bytes()[at].is_ascii_whitespace();
            assert!(read(&folder).is_err() || is_space, "octet {at}");
        }
        std::fs::write(folder.join(NAME), "{\"format\": 2}").unwrap();
        assert!(matches!(read(&folder), Err(NodeFileError::Version { version: 2, .. })));
        std::fs::write(folder.join(NAME), "{\"format\": 1, \"vho").unwrap();
        assert!(matches!(read(&folder), Err(NodeFileError::Damaged { .. })));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
