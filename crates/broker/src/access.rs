//! The user of a connection and their permissions in its vhost.
//!
//! The value is an immutable, shared snapshot: users and permissions are stored outside the vhost, and a
//! connection gets a new snapshot when they change. The rules are those of RabbitMQ's access control guide:
//! an empty pattern matches only the empty name, other patterns are searched for.

use amqp::reply_code::ReplyCode;

use crate::message::Name;
use crate::policy::Pattern;
use crate::refusal::{Refusal, Resource, ResourceKind};

/// RabbitMQ's name for the broker itself as the declarer of predeclared resources.
pub const INTERNAL_USER: &str = "rmq-internal";

/// A kind of access to a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permission {
    /// Declare and delete.
    Configure,
    /// Publish to, and bind to.
    Write,
    /// Consume, get, purge, and bind from.
    Read,
}

impl Permission {
    /// The word in reply texts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Configure => "configure",
            Self::Write => "write",
            Self::Read => "read",
        }
    }
}

/// The permission patterns of a user in one vhost.
#[derive(Clone, PartialEq, Debug)]
pub struct Permissions {
    /// Names of the resources that the user may configure.
    pub configure: PermissionPattern,
    /// Names of the resources that the user may write to.
    pub write: PermissionPattern,
    /// Names of the resources that the user may read from.
    pub read: PermissionPattern,
}

/// A permission pattern; an empty one matches only the empty name.
#[derive(Clone, PartialEq, Debug)]
pub struct PermissionPattern(Allowed);

#[derive(Clone, PartialEq, Debug)]
enum Allowed {
    Nothing,
    EmptyName,
    Matching(Pattern),
}

impl PermissionPattern {
    /// Compiles `text`.
    ///
    /// # Errors
    /// RabbitMQ's text for an invalid regular expression.
    pub fn new(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self(Allowed::EmptyName));
        }
        Pattern::new(text).map(|pattern| Self(Allowed::Matching(pattern)))
    }

    /// Compiles `text`, a pattern stored on disk that was accepted before. A pattern that exceeds a bound now
    /// allows nothing; [`PermissionPattern::problem`] gives the reason.
    pub fn stored(text: &str) -> Self {
        if text.is_empty() {
            return Self(Allowed::EmptyName);
        }
        Self(Allowed::Matching(Pattern::stored(text)))
    }

    /// The reason why the pattern allows nothing, if it exceeds a bound.
    pub fn problem(&self) -> Option<&str> {
        match &self.0 {
            Allowed::Nothing | Allowed::EmptyName => None,
            Allowed::Matching(pattern) => pattern.problem(),
        }
    }

    /// A pattern that allows no name, for a user without permissions.
    pub const fn nothing() -> Self {
        Self(Allowed::Nothing)
    }

    /// True if the pattern allows `name`.
    pub fn allows(&self, name: &str) -> bool {
        match &self.0 {
            Allowed::Nothing => false,
            Allowed::EmptyName => name.is_empty(),
            Allowed::Matching(pattern) => pattern.matches(name),
        }
    }

    /// The text of the pattern.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Allowed::Nothing | Allowed::EmptyName => "",
            Allowed::Matching(pattern) => pattern.as_str(),
        }
    }
}

/// Limits on the routing keys that a user may use with one topic exchange.
#[derive(Clone, PartialEq, Debug)]
pub struct TopicPermission {
    /// The exchange.
    pub exchange: Name,
    /// Keys that the user may publish with.
    pub write: PermissionPattern,
    /// Keys that the user may bind with.
    pub read: PermissionPattern,
}

/// A user with permissions in a vhost.
#[derive(Clone, PartialEq, Debug)]
pub struct Access {
    /// The user name.
    pub user: Name,
    /// True if the user may set the `user_id` property to any name (tag `impersonator`).
    pub impersonator: bool,
    /// The permissions of the user.
    pub permissions: Permissions,
    /// Further limits for topic exchanges; exchanges without an entry are not limited.
    pub topic_permissions: Vec<TopicPermission>,
}

impl Access {
    /// A user without any permission.
    pub fn nothing(user: Name) -> Self {
        let nothing = PermissionPattern::nothing;
        Self {
            user,
            impersonator: false,
            permissions: Permissions { configure: nothing(), write: nothing(), read: nothing() },
            topic_permissions: Vec::new(),
        }
    }

    /// A user with all permissions on names that `pattern` matches.
    ///
    /// # Errors
    /// RabbitMQ's text for an invalid regular expression.
    pub fn matching(user: Name, pattern: &str) -> Result<Self, String> {
        let pattern = PermissionPattern::new(pattern)?;
        let permissions =
            Permissions { configure: pattern.clone(), write: pattern.clone(), read: pattern };
        Ok(Self { permissions, ..Self::nothing(user) })
    }

    /// True if the user has `permission` on `resource`.
    pub fn has(&self, permission: Permission, resource: Resource<'_>) -> bool {
        let pattern = match permission {
            Permission::Configure => &self.permissions.configure,
            Permission::Write => &self.permissions.write,
            Permission::Read => &self.permissions.read,
        };
        pattern.allows(shown_name(resource))
    }

    /// True if the user may read from a queue of this name, which may be gone.
    pub fn may_read_queue(&self, vhost: &str, queue: &str) -> bool {
        self.has(Permission::Read, Resource { kind: ResourceKind::Queue, name: queue, vhost })
    }

    /// Requires `permission` on `resource`.
    ///
    /// # Errors
    /// 403 with RabbitMQ's text.
    pub fn require(&self, permission: Permission, resource: Resource<'_>) -> Result<(), Refusal> {
        if self.has(permission, resource) {
            return Ok(());
        }
        let shown = Resource { name: shown_name(resource), ..resource };
        Err(Refusal::access_refused(format!(
            "{} access to {shown} refused for user '{}'",
            permission.as_str(),
            self.user
        )))
    }

    /// Requires that the user may use the routing key `key` with the topic exchange `exchange`.
    ///
    /// # Errors
    /// 403 with RabbitMQ's text.
    pub fn require_topic(
        &self,
        permission: Permission,
        exchange: Resource<'_>,
        key: &str,
    ) -> Result<(), Refusal> {
        let limit = self.topic_permissions.iter().find(|p| &*p.exchange == exchange.name);
        let allowed = limit.is_none_or(|limit| match permission {
            Permission::Read => limit.read.allows(key),
            Permission::Write | Permission::Configure => limit.write.allows(key),
        });
        if allowed {
            return Ok(());
        }
        Err(Refusal::access_refused(format!(
            "{} access to topic '{key}' in {exchange} refused for user '{}'",
            permission.as_str(),
            self.user
        )))
    }

    /// Checks the `user_id` property of a publish.
    ///
    /// # Errors
    /// 406 if the property names another user.
    pub(crate) fn check_user_id(&self, user_id: &[u8]) -> Result<(), Refusal> {
        if user_id == self.user.as_bytes() || self.impersonator {
            return Ok(());
        }
        Err(Refusal::new(
            ReplyCode::PreconditionFailed,
            format!(
                "user_id property set to '{}' but authenticated user was '{}'",
                String::from_utf8_lossy(user_id),
                self.user
            ),
        ))
    }
}

/// The name that permissions apply to: the default exchange is `amq.default`.
fn shown_name(resource: Resource<'_>) -> &str {
    match (resource.kind, resource.name) {
        (ResourceKind::Exchange, "") => "amq.default",
        (_, name) => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(configure: &str, write: &str, read: &str) -> Access {
        let pattern = |text| PermissionPattern::new(text).unwrap();
        Access {
            user: "bob".into(),
            impersonator: false,
            permissions: Permissions {
                configure: pattern(configure),
                write: pattern(write),
                read: pattern(read),
            },
            topic_permissions: Vec::new(),
        }
    }

    #[test]
    fn patterns_decide_and_the_text_names_what_was_missing() {
        let bob = access("", "^amq\\.default$", ".*");
        let exchange = |name| Resource { kind: ResourceKind::Exchange, name, vhost: "/" };
        assert!(bob.require(Permission::Read, exchange("x")).is_ok());
        assert!(bob.require(Permission::Write, exchange("")).is_ok());
        assert_eq!(
            bob.require(Permission::Write, exchange("zdlx")).unwrap_err().explanation,
            "write access to exchange 'zdlx' in vhost '/' refused for user 'bob'"
        );
        assert!(!bob.has(Permission::Configure, exchange("x")));
    }

    #[test]
    fn lost_permissions_exclude_the_empty_name() {
        let nobody = Access::nothing("bob".into());
        let queue = |name| Resource { kind: ResourceKind::Queue, name, vhost: "/" };
        for permission in [Permission::Configure, Permission::Write, Permission::Read] {
            assert!(!nobody.has(permission, queue("")) && !nobody.has(permission, queue("q")));
        }
        assert!(access("", "", "").has(Permission::Read, queue("")));
    }
}
