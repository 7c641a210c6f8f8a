//! A user, as `node.json` and the metadata have it.

use std::collections::BTreeMap;

use broker::access::{PermissionPattern, Permissions};
use serde::{Deserialize, Serialize};

use crate::auth::password::PasswordHash;
use crate::auth::{TopicPattern, User};
use crate::disk::json_files::members::{Base64, limits};
use crate::requests::UserLimit;

/// A user with the hash of the password.
#[derive(Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredUser {
    name: String,
    password_hash: Base64<'static>,
    hashing_algorithm: String,
    tags: Vec<String>,
    permissions: Vec<StoredPermissions>,
    topic_permissions: Vec<StoredTopicPattern>,
    /// Missing in format 1.
    #[serde(default, with = "limits")]
    limits: BTreeMap<UserLimit, i64>,
}

/// The permissions of a user in a vhost.
#[derive(Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct StoredPermissions {
    vhost: String,
    configure: String,
    write: String,
    read: String,
}

/// A topic permission of a user in a vhost.
#[derive(Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct StoredTopicPattern {
    vhost: String,
    exchange: String,
    write: String,
    read: String,
}

impl From<&User> for StoredUser {
    fn from(user: &User) -> Self {
        let (hash, algorithm) = user.password.to_bytes();
        let permissions = |(vhost, stored): (&String, &Permissions)| StoredPermissions {
            vhost: vhost.clone(),
            configure: stored.configure.as_str().to_owned(),
            write: stored.write.as_str().to_owned(),
            read: stored.read.as_str().to_owned(),
        };
        let topics = user.topic_permissions.iter();
        let topics =
            topics.flat_map(|(vhost, patterns)| patterns.iter().map(move |it| (vhost, it)));
        let topic = |(vhost, stored): (&String, &TopicPattern)| StoredTopicPattern {
            vhost: vhost.clone(),
            exchange: stored.exchange.clone(),
            write: stored.write.clone(),
            read: stored.read.clone(),
        };
        Self {
            name: user.name.clone(),
            password_hash: Base64(hash.into()),
            hashing_algorithm: algorithm.to_owned(),
            tags: user.tags.clone(),
            permissions: user.permissions.iter().map(permissions).collect(),
            topic_permissions: topics.map(topic).collect(),
            limits: user.limits.clone(),
        }
    }
}

impl TryFrom<StoredUser> for User {
    type Error = String;

    fn try_from(stored: StoredUser) -> Result<Self, String> {
        let StoredUser { name, password_hash, hashing_algorithm, tags, .. } = stored;
        let password = PasswordHash::from_bytes(&password_hash.0, &hashing_algorithm);
        let password = password.map_err(|error| format!("the password of '{name}': {error}"))?;
        let mut user = Self::new(&name, password, tags);
        user.limits = stored.limits;
        for StoredPermissions { vhost, configure, write, read } in stored.permissions {
            let permissions = Permissions {
                configure: PermissionPattern::stored(&configure),
                write: PermissionPattern::stored(&write),
                read: PermissionPattern::stored(&read),
            };
            log_unusable(&user.name, &permissions);
            user.permissions.insert(vhost, permissions);
        }
        for StoredTopicPattern { vhost, exchange, write, read } in stored.topic_permissions {
            let pattern = TopicPattern { exchange, write, read };
            user.topic_permissions.entry(vhost).or_default().push(pattern);
        }
        Ok(user)
    }
}

/// Logs patterns that were accepted before and exceed a bound now.
fn log_unusable(user: &str, permissions: &Permissions) {
    let Permissions { configure, write, read } = permissions;
    for (permission, pattern) in [("configure", configure), ("write", write), ("read", read)] {
        if let Some(problem) = pattern.problem() {
            let pattern = pattern.as_str();
            tracing::warn!(user, permission, pattern, problem, "a permission allows nothing");
        }
    }
}
