//! The user who sends a request, and the login.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// A name with a password, or the token of the local machine.
pub struct Credentials {
    /// Name of the user; meaningless beside a token.
    pub user: String,
    /// The password, or the token.
    pub password: Vec<u8>,
    /// True if `password` is the token that the node writes for its own machine.
    pub is_token: bool,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// The reason why a login is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoginRefused {
    /// Unknown user, or wrong password.
    Credentials,
    /// The user may log in from the broker's machine only.
    NotLoopback,
    /// The node cannot check logins now.
    Unavailable,
}

/// A user who has logged in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// Name of the user.
    pub name: String,
    /// Tags of the user.
    pub tags: Vec<String>,
    /// Vhosts in which the user has permissions.
    pub vhosts: Vec<String>,
    /// True if the user may log in from the broker's machine only.
    pub is_loopback_only: bool,
    /// True for the holder of the local machine's token, who is no user and may do everything.
    pub is_local_administrator: bool,
    /// The vhosts to which lists are confined, if another node asks for a part of a list.
    pub only_vhosts: Option<Arc<BTreeSet<String>>>,
}

impl Caller {
    fn has_one_of(&self, tags: &[&str]) -> bool {
        self.tags.iter().any(|tag| tags.contains(&tag.as_str()))
    }

    /// True if the user may use the API at all.
    pub fn is_management(&self) -> bool {
        self.has_one_of(&["administrator", "monitoring", "policymaker", "management"])
    }

    /// True if the user sees everything about the node, and objects of other users.
    pub fn is_monitor(&self) -> bool {
        self.has_one_of(&["administrator", "monitoring"])
    }

    /// True if the user may set policies.
    pub fn is_policymaker(&self) -> bool {
        self.has_one_of(&["administrator", "policymaker"])
    }

    /// True if the user may change users, vhosts and the node.
    pub fn is_administrator(&self) -> bool {
        self.has_one_of(&["administrator"])
    }

    /// True if lists show clients of `user` to the caller.
    pub fn can_see_client(&self, user: &str) -> bool {
        self.is_monitor() || self.name == user
    }

    /// True if the caller may close clients of `user`, or cancel jobs of `user`.
    pub fn can_close_client(&self, user: &str) -> bool {
        self.is_administrator() || self.name == user
    }

    /// True if the caller may read the contents of `vhost`. As in RabbitMQ, a monitor needs permissions.
    pub fn can_enter(&self, vhost: &str) -> bool {
        (self.is_administrator() || self.has_permissions_in(vhost)) && self.is_asked_for(vhost)
    }

    /// True if lists show `vhost` to the caller.
    pub fn can_list(&self, vhost: &str) -> bool {
        (self.is_monitor() || self.has_permissions_in(vhost)) && self.is_asked_for(vhost)
    }

    /// True if the answer is to be about `vhost`, if the caller may see the vhost.
    pub fn is_asked_for(&self, vhost: &str) -> bool {
        self.only_vhosts.as_ref().is_none_or(|only| only.contains(vhost))
    }

    fn has_permissions_in(&self, vhost: &str) -> bool {
        self.vhosts.iter().any(|name| name == vhost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_hide_the_password_in_debug_output() {
        let (user, password) = ("anna".to_owned(), b"secret".to_vec());
        let credentials = Credentials { user, password, is_token: false };
        assert_eq!(format!("{credentials:?}"), "Credentials { user: \"anna\", .. }");
    }

    #[test]
    fn tags_grant_what_rabbitmq_grants() {
        let caller = |tag: &str| Caller {
            name: "anna".to_owned(),
            tags: vec!["other".to_owned(), tag.to_owned()],
            vhosts: vec!["hers".to_owned()],
            is_loopback_only: false,
            is_local_administrator: false,
            only_vhosts: None,
        };
        let grants = |tag| {
            let caller = caller(tag);
            assert!(caller.can_list("hers") && caller.can_enter("hers"));
            let others = (caller.can_list("his"), caller.can_enter("his"));
            let tags = (caller.is_management(), caller.is_policymaker(), caller.is_monitor());
            (tags, caller.is_administrator(), others)
        };
        assert_eq!(grants("impersonator"), ((false, false, false), false, (false, false)));
        assert_eq!(grants("management"), ((true, false, false), false, (false, false)));
        assert_eq!(grants("policymaker"), ((true, true, false), false, (false, false)));
        assert_eq!(grants("monitoring"), ((true, false, true), false, (true, false)));
        assert_eq!(grants("administrator"), ((true, true, true), true, (true, true)));
    }
}
