//! Users.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use management::{
    Change, NewPassword, NewUser, PermissionDetails, TopicPermissionDetails, Unchanged, UserDetails,
};

use super::change;
use crate::auth::User;
use crate::auth::password::{HashError, PasswordHash};
use crate::node::Node;

impl management::Users for Node {
    fn users(&self) -> Vec<UserDetails> {
        self.auth.users().iter().map(|user| details(user)).collect()
    }

    fn user(&self, name: &str) -> Option<UserDetails> {
        self.auth.user(name).map(|user| details(&user))
    }

    fn put_user(&self, user: NewUser) -> Change<'_, Result<bool, Unchanged>> {
        Box::pin(async move {
            let NewUser { name, password, tags, limits } = user;
            let password = match password {
                NewPassword::None => Ok(PasswordHash::None),
                NewPassword::Plain(password) => self.auth.hash(&name, password).await,
                NewPassword::Hash { octets, algorithm } => {
                    PasswordHash::from_import(&octets, algorithm.as_deref())
                }
            };
            let password = password.map_err(unusable)?;
            change(move || Self::put_user(self, &name, password, tags, limits)).await
        })
    }

    fn delete_users(&self, names: Vec<String>) -> Change<'_, Result<usize, Unchanged>> {
        change(move || self.remove_users(&names))
    }

    fn hash_password(&self, password: &[u8]) -> Result<String, Unchanged> {
        let hash = PasswordHash::new_sha256(password).map_err(unusable)?;
        Ok(STANDARD.encode(hash.to_bytes().0))
    }
}

fn unusable(error: HashError) -> Unchanged {
    match error {
        HashError::Length | HashError::Algorithm => Unchanged::Invalid(error.to_string()),
        HashError::Salt | HashError::Hashing => Unchanged::Unable(error.to_string()),
    }
}

fn details(user: &User) -> UserDetails {
    let (hash, hashing_algorithm) = user.password.to_bytes();
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
