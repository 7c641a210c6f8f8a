//! Users, their permissions and their limits.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use broker::access::{PermissionPattern, Permissions};
use tokio::task::block_in_place;

use super::set_limit;
use crate::auth::password::{HashError, PasswordHash};
use crate::auth::{TopicPattern, User};
use crate::node::Node;
use crate::node::metadata::users_and_vhosts::set_topic_pattern;
use crate::requests::{
    ChangeError, NewPassword, NewUser, PermissionDetails, TopicPermissionDetails, UserDetails,
    UserLimit,
};

impl Node {
    /// All users, by name.
    pub fn users(&self) -> Vec<UserDetails> {
        self.auth.users().iter().map(|user| details(user)).collect()
    }

    /// The user of that name.
    pub fn user(&self, name: &str) -> Option<UserDetails> {
        self.auth.user(name).map(|user| details(&user))
    }

    /// Adds a user, or changes an existing one and keeps the permissions. True if the user is new.
    pub async fn put_user(&self, user: NewUser) -> Result<bool, ChangeError> {
        let NewUser { name, password, tags, limits, permissions } = user;
        let password = match password {
            NewPassword::None => Ok(PasswordHash::None),
            NewPassword::Plain(password) => self.auth.hash(&name, password).await,
            NewPassword::Hash { bytes, algorithm } => {
                PasswordHash::from_import(&bytes, algorithm.as_deref())
            }
        };
        let password = password.map_err(unusable)?;
        block_in_place(|| {
            let mut by_vhost = BTreeMap::new();
            for of_vhost in permissions {
                self.check_vhost(&of_vhost.vhost)?;
                let permissions = permissions_of(&of_vhost)?;
                by_vhost.insert(of_vhost.vhost, permissions);
            }
            self.put_user_with_hash(&name, password, tags, limits, by_vhost)
        })
    }

    /// Deletes users with their permissions and closes their connections. Returns how many of them existed.
    pub async fn delete_users(&self, names: Vec<String>) -> Result<usize, ChangeError> {
        block_in_place(|| self.remove_users(&names))
    }

    /// The hash of a password with a new salt, in base64, in RabbitMQ's format.
    ///
    /// # Errors
    /// When the system has no randomness.
    pub fn hash_password(&self, password: &[u8]) -> Result<String, ChangeError> {
        let hash = PasswordHash::new_sha256(password).map_err(unusable)?;
        Ok(STANDARD.encode(hash.to_bytes().0))
    }

    /// Sets a limit of a user, or clears it.
    pub async fn set_user_limit(
        &self,
        user: &str,
        limit: UserLimit,
        to: Option<i64>,
    ) -> Result<(), ChangeError> {
        block_in_place(|| {
            self.change_user(user, |user| {
                set_limit(&mut user.limits, limit, to);
                Ok(())
            })
        })
    }

    /// Sets the permissions of a user in a vhost. True if the user had none there.
    pub async fn set_permissions(&self, to: PermissionDetails) -> Result<bool, ChangeError> {
        block_in_place(|| {
            let permissions = permissions_of(&to)?;
            self.change_user(&to.user, |user| {
                self.check_vhost(&to.vhost)?;
                Ok(user.permissions.insert(to.vhost, permissions).is_none())
            })
        })
    }

    /// Clears the permissions of a user in a vhost. False if the user had none there.
    pub async fn clear_permissions(&self, vhost: &str, user: &str) -> Result<bool, ChangeError> {
        block_in_place(|| {
            let cleared = self.change_user(user, |user| match user.permissions.remove(vhost) {
                Some(_) => Ok(()),
                None => Err(ChangeError::NoSuchVhost),
            });
            was_there(cleared)
        })
    }

    /// Sets the topic permissions of a user for an exchange. True if the user had none in that vhost.
    pub async fn set_topic_permissions(
        &self,
        to: TopicPermissionDetails,
    ) -> Result<bool, ChangeError> {
        block_in_place(|| {
            let TopicPermissionDetails { user, vhost, exchange, write, read } = to;
            // Kept as text, because a pattern may contain variables for the user and the vhost.
            pattern(&write)?;
            pattern(&read)?;
            self.change_user(&user, |user| {
                self.check_exchange(&vhost, &exchange)?;
                let patterns = user.topic_permissions.entry(vhost).or_default();
                let is_new = patterns.is_empty();
                set_topic_pattern(patterns, TopicPattern { exchange, write, read })?;
                Ok(is_new)
            })
        })
    }

    /// Clears the topic permissions of a user for one exchange, or for all exchanges of a vhost. False if the
    /// user had none in that vhost.
    pub async fn clear_topic_permissions(
        &self,
        vhost: &str,
        user: &str,
        exchange: Option<&str>,
    ) -> Result<bool, ChangeError> {
        block_in_place(|| {
            let cleared = self.change_user(user, |user| {
                let patterns = user.topic_permissions.remove(vhost);
                let mut patterns = patterns.ok_or(ChangeError::NoSuchVhost)?;
                patterns.retain(|known| exchange.is_some_and(|e| e != known.exchange));
                if !patterns.is_empty() {
                    user.topic_permissions.insert(vhost.to_owned(), patterns);
                }
                Ok(())
            });
            was_there(cleared)
        })
    }
}

fn unusable(error: HashError) -> ChangeError {
    match error {
        HashError::Length | HashError::Algorithm => ChangeError::Invalid(error.to_string()),
        HashError::Salt | HashError::Hashing => ChangeError::Unable(error.to_string()),
    }
}

fn details(user: &User) -> UserDetails {
    let (hash, hashing_algorithm) = user.password.to_rabbitmq();
    let permissions = user.permissions.iter().map(|(vhost, permissions)| PermissionDetails {
        user: user.name.clone(),
        vhost: vhost.clone(),
        configure: permissions.configure.as_str().to_owned(),
        write: permissions.write.as_str().to_owned(),
        read: permissions.read.as_str().to_owned(),
    });
    let topics = user.topic_permissions.iter().flat_map(|(vhost, patterns)| {
        patterns.iter().map(|pattern| TopicPermissionDetails {
            user: user.name.clone(),
            vhost: vhost.clone(),
            exchange: pattern.exchange.clone(),
            write: pattern.write.clone(),
            read: pattern.read.clone(),
        })
    });
    UserDetails {
        name: user.name.clone(),
        password_hash: STANDARD.encode(hash),
        hashing_algorithm,
        tags: user.tags.clone(),
        limits: user.limits.clone(),
        permissions: permissions.collect(),
        topic_permissions: topics.collect(),
    }
}

fn permissions_of(details: &PermissionDetails) -> Result<Permissions, ChangeError> {
    Ok(Permissions {
        configure: pattern(&details.configure)?,
        write: pattern(&details.write)?,
        read: pattern(&details.read)?,
    })
}

impl Node {
    fn check_vhost(&self, vhost: &str) -> Result<(), ChangeError> {
        self.vhosts.get(vhost).map(|_| ()).ok_or(ChangeError::NoSuchVhost)
    }

    fn check_exchange(&self, vhost: &str, exchange: &str) -> Result<(), ChangeError> {
        let handle = self.vhosts.get(vhost).ok_or(ChangeError::NoSuchVhost)?;
        match handle.read(|v, _| v.exchange(exchange).is_some()) {
            true => Ok(()),
            false => Err(ChangeError::NoSuchExchange),
        }
    }
}

fn pattern(text: &str) -> Result<PermissionPattern, ChangeError> {
    PermissionPattern::new(text)
        .map_err(|problem| ChangeError::Invalid(format!("invalid_regexp: {problem}")))
}

/// True if something was cleared, false if the user or vhost was missing.
fn was_there(cleared: Result<(), ChangeError>) -> Result<bool, ChangeError> {
    match cleared {
        Ok(()) => Ok(true),
        Err(ChangeError::NoSuchUser | ChangeError::NoSuchVhost) => Ok(false),
        Err(other) => Err(other),
    }
}
