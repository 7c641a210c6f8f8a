//! Users, their permissions and their limits.

use std::collections::BTreeMap;

use crate::requests::change::{ChangeError, ChangeFuture};
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

/// The users of the node. A change of permissions applies to open connections from their next operation on.
pub trait Users {
    /// All users, by name.
    fn users(&self) -> Vec<UserDetails>;

    /// The user of that name.
    fn user(&self, name: &str) -> Option<UserDetails>;

    /// Adds a user, or changes an existing one and keeps the permissions. True if the user is new.
    fn put_user(&self, user: NewUser) -> ChangeFuture<'_, Result<bool, ChangeError>>;

    /// Deletes users with their permissions and closes their connections. Returns how many of them existed.
    fn delete_users(&self, names: Vec<String>) -> ChangeFuture<'_, Result<usize, ChangeError>>;

    /// The hash of a password with a new salt, in base64, in RabbitMQ's format.
    ///
    /// # Errors
    /// When the system has no randomness.
    fn hash_password(&self, password: &[u8]) -> Result<String, ChangeError>;

    /// Sets a limit of a user, or clears it.
    fn set_user_limit(
        &self,
        user: &str,
        limit: UserLimit,
        to: Option<i64>,
    ) -> ChangeFuture<'_, Result<(), ChangeError>>;

    /// Sets the permissions of a user in a vhost. True if the user had none there.
    fn set_permissions(&self, to: PermissionDetails)
    -> ChangeFuture<'_, Result<bool, ChangeError>>;

    /// Clears the permissions of a user in a vhost. False if the user had none there.
    fn clear_permissions(
        &self,
        vhost: &str,
        user: &str,
    ) -> ChangeFuture<'_, Result<bool, ChangeError>>;

    /// Sets the topic permissions of a user for an exchange. True if the user had none in that vhost.
    fn set_topic_permissions(
        &self,
        to: TopicPermissionDetails,
    ) -> ChangeFuture<'_, Result<bool, ChangeError>>;

    /// Clears the topic permissions of a user for one exchange, or for all exchanges of a vhost. False if the
    /// user had none in that vhost.
    fn clear_topic_permissions(
        &self,
        vhost: &str,
        user: &str,
        exchange: Option<&str>,
    ) -> ChangeFuture<'_, Result<bool, ChangeError>>;
}
