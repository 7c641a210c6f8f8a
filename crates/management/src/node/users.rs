//! Users.

use std::collections::BTreeMap;

use super::{Change, PermissionDetails, TopicPermissionDetails, Unchanged, UserLimit};

/// A user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UserDetails {
    /// His name.
    pub name: String,
    /// The salted hash of his password in base64; empty if he has none.
    pub password_hash: String,
    /// How it was hashed.
    pub hashing_algorithm: &'static str,
    /// His tags.
    pub tags: Vec<String>,
    /// What he may have at most.
    pub limits: BTreeMap<UserLimit, i64>,
    /// What he may do, by vhost.
    pub permissions: Vec<PermissionDetails>,
    /// Which routing keys he may use, by vhost and exchange.
    pub topic_permissions: Vec<TopicPermissionDetails>,
}

/// The password that a user is to have.
#[derive(Clone, PartialEq, Eq)]
pub enum NewPassword {
    /// None: he cannot log in with a password.
    None,
    /// This one.
    Plain(Vec<u8>),
    /// The one of which this is the hash.
    Hash {
        /// Salt and digest.
        octets: Vec<u8>,
        /// How it was hashed; none if nobody says.
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

/// A user as he is to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewUser {
    /// His name.
    pub name: String,
    /// His password.
    pub password: NewPassword,
    /// His tags.
    pub tags: Vec<String>,
    /// His limits, if they are to be others than now.
    pub limits: Option<BTreeMap<UserLimit, i64>>,
}

/// The users of the node.
pub trait Users {
    /// All users, by name.
    fn users(&self) -> Vec<UserDetails>;

    /// The user of that name.
    fn user(&self, name: &str) -> Option<UserDetails>;

    /// Adds a user, or changes the one of that name, who keeps his permissions: whether he is new.
    fn put_user(&self, user: NewUser) -> Change<'_, Result<bool, Unchanged>>;

    /// Removes those of these users who are there, with their permissions, and closes their
    /// connections: how many there were.
    fn delete_users(&self, names: Vec<String>) -> Change<'_, Result<usize, Unchanged>>;

    /// The hash of a password with a new salt, in base64, as RabbitMQ makes it.
    ///
    /// # Errors
    /// When the system has no randomness.
    fn hash_password(&self, password: &[u8]) -> Result<String, Unchanged>;
}
