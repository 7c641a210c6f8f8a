//! Users, their permissions and their limits.

use std::collections::BTreeMap;

use crate::requests::limits::UserLimit;
use crate::requests::permissions::{PermissionDetails, TopicPermissionDetails};

/// A user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UserDetails {
    /// Name of the user.
    pub name: String,
    /// Salted hash of the password in base64; empty without a password.
    pub password_hash: String,
    /// RabbitMQ's name of the hash algorithm.
    pub hashing_algorithm: &'static str,
    /// Tags of the user.
    pub tags: Vec<String>,
    /// Limits of the user.
    pub limits: BTreeMap<UserLimit, i64>,
    /// Permissions, by vhost.
    pub permissions: Vec<PermissionDetails>,
    /// Topic permissions, by vhost and exchange.
    pub topic_permissions: Vec<TopicPermissionDetails>,
}

/// The password to set for a user.
#[derive(Clone, PartialEq, Eq)]
pub enum NewPassword {
    /// No password: the user cannot log in with one.
    None,
    /// A password in plain text.
    Plain(Vec<u8>),
    /// The hash of a password.
    Hash {
        /// Salt and digest.
        bytes: Vec<u8>,
        /// Name of the hash algorithm; none for the default.
        algorithm: Option<String>,
    },
}

impl std::fmt::Debug for NewPassword {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Plain(_) => "Plain(..)",
            Self::Hash { .. } => "Hash(..)",
        })
    }
}

/// A user to add or to change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewUser {
    /// Name of the user.
    pub name: String,
    /// The new password.
    pub password: NewPassword,
    /// The new tags.
    pub tags: Vec<String>,
    /// The new limits; none keeps the current ones.
    pub limits: Option<BTreeMap<UserLimit, i64>>,
    /// The permissions of a user who is new; others keep theirs.
    pub permissions: Vec<PermissionDetails>,
}
