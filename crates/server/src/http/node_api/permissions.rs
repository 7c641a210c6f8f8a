//! What users may do in vhosts.

use broker::access::{PermissionPattern, Permissions};
use management::{Change, PermissionDetails, TopicPermissionDetails, Unchanged};

use super::change;
use crate::auth::TopicPattern;
use crate::node::Node;
use crate::node::users_and_vhosts::set_topic_pattern;

impl management::Permissions for Node {
    fn set_permissions(&self, to: PermissionDetails) -> Change<'_, Result<bool, Unchanged>> {
        change(move || {
            let PermissionDetails { user, vhost, configure, write, read } = to;
            let permissions = Permissions {
                configure: pattern(&configure)?,
                write: pattern(&write)?,
                read: pattern(&read)?,
            };
            self.change_user(&user, |user| {
                self.check_vhost(&vhost)?;
                Ok(user.permissions.insert(vhost, permissions).is_none())
            })
        })
    }

    fn clear_permissions(&self, vhost: &str, user: &str) -> Change<'_, Result<bool, Unchanged>> {
        let (vhost, user) = (vhost.to_owned(), user.to_owned());
        change(move || {
            let cleared = self.change_user(&user, |user| match user.permissions.remove(&vhost) {
                Some(_) => Ok(()),
                None => Err(Unchanged::NoSuchVhost),
            });
            was_there(cleared)
        })
    }

    fn set_topic_permissions(
        &self,
        to: TopicPermissionDetails,
    ) -> Change<'_, Result<bool, Unchanged>> {
        change(move || {
            let TopicPermissionDetails { user, vhost, exchange, write, read } = to;
            // They are kept as text, for they may name the user and the vhost.
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

    fn clear_topic_permissions(
        &self,
        vhost: &str,
        user: &str,
        exchange: Option<&str>,
    ) -> Change<'_, Result<bool, Unchanged>> {
        let (vhost, user) = (vhost.to_owned(), user.to_owned());
        let exchange = exchange.map(str::to_owned);
        change(move || {
            let cleared = self.change_user(&user, |user| {
                let patterns = user.topic_permissions.remove(&vhost);
                let mut patterns = patterns.ok_or(Unchanged::NoSuchVhost)?;
                patterns.retain(|known| exchange.as_ref().is_some_and(|e| *e != known.exchange));
                if !patterns.is_empty() {
                    user.topic_permissions.insert(vhost, patterns);
                }
                Ok(())
            });
            was_there(cleared)
        })
    }
}

impl Node {
    fn check_vhost(&self, vhost: &str) -> Result<(), Unchanged> {
        self.vhosts.get(vhost).map(|_| ()).ok_or(Unchanged::NoSuchVhost)
    }

    fn check_exchange(&self, vhost: &str, exchange: &str) -> Result<(), Unchanged> {
        let handle = self.vhosts.get(vhost).ok_or(Unchanged::NoSuchVhost)?;
        match handle.write(|v, _| v.exchange(exchange).is_some()) {
            true => Ok(()),
            false => Err(Unchanged::NoSuchExchange),
        }
    }
}

fn pattern(text: &str) -> Result<PermissionPattern, Unchanged> {
    PermissionPattern::new(text)
        .map_err(|problem| Unchanged::Invalid(format!("invalid_regexp: {problem}")))
}

/// What is not there cannot be taken away.
fn was_there(cleared: Result<(), Unchanged>) -> Result<bool, Unchanged> {
    match cleared {
        Ok(()) => Ok(true),
        Err(Unchanged::NoSuchUser | Unchanged::NoSuchVhost) => Ok(false),
        Err(other) => Err(other),
    }
}
