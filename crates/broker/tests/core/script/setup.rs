//! Setup of a scenario beside the commands of clients: options, users and policies.

use std::sync::Arc;

use broker::access::{Access, PermissionPattern, Permissions, TopicPermission};
use broker::page::Paging;
use broker::{ApplyTo, Definition, Pattern, Policy, PolicyKind, QueueType};

use super::words::Words;
use super::{World, parse};

impl World {
    pub(super) fn set(&mut self, words: &mut Words) {
        let word = words.next();
        let base = self.base;
        let mut options = base;
        match word.as_str() {
            "no-cancel-notify" => self.cancel_notify = false,
            "cancel-notify" => self.cancel_notify = true,
            "show-log" => self.shows.log = true,
            "show-deaths" => self.shows.deaths = true,
            "hold-log" => self.holds_log = true,
            "resident" => options.paging = Paging::default(),
            "replicated" => options.delivers_after_commit = true,
            "no-global-qos" => options.permits_global_qos = false,
            "consumers-max" => {
                options.consumers_per_channel_max = Some(words.next().parse().unwrap());
            }
            "default-queue-type" => {
                let queue_type = QueueType::parse(words.next().as_bytes()).unwrap();
                self.vhost.set_default_queue_type(queue_type);
            }
            "queues-max" => self.vhost.set_queues_max(words.next().parse().ok()),
            other => panic!("cannot set {other}"),
        }
        if options != base {
            *self = Self::with(options);
        }
    }

    /// `user NAME CONFIGURE WRITE READ`, also for one who is connected.
    pub(super) fn user(&mut self, words: &mut Words) {
        let name = words.next();
        let patterns = [words.next(), words.next(), words.next()];
        let mut access = (*access(&name, [&patterns[0], &patterns[1], &patterns[2]])).clone();
        while let Some(word) = words.try_next() {
            match word.as_str() {
                "impersonator" => access.impersonator = true,
                "topic" => access.topic_permissions.push(TopicPermission {
                    exchange: words.next().as_str().into(),
                    write: PermissionPattern::new(&words.next()).unwrap(),
                    read: PermissionPattern::new(&words.next()).unwrap(),
                }),
                other => panic!("a user has no {other}"),
            }
        }
        let access = Arc::new(access);
        if let Some(connection) = self.clients.get(&name) {
            self.vhost.set_access(self.now(), *connection, Arc::clone(&access));
        }
        self.access.insert(name, access);
    }

    /// `policy NAME PATTERN key=value ...`; a complaint is shown instead.
    pub(super) fn policy(&mut self, kind: PolicyKind, words: &mut Words, out: &mut Vec<String>) {
        let name = words.next();
        let pattern = match Pattern::new(&words.next()) {
            Ok(pattern) => pattern,
            Err(complaint) => {
                while words.try_next().is_some() {}
                return out.push(format!("invalid: {complaint}"));
            }
        };
        let (mut priority, mut apply_to, mut entries) = (0.0, ApplyTo::All, Vec::new());
        while let Some((key, value)) = words.pair() {
            match key.as_str() {
                "priority" => priority = value.parse().unwrap(),
                "apply-to" => match ApplyTo::parse(&value) {
                    Ok(value) => apply_to = value,
                    Err(complaint) => return out.push(format!("invalid: {complaint}")),
                },
                _ => entries.push((key, parse::policy_value(&value))),
            }
        }
        let definition = match Definition::parse(entries, kind) {
            Ok(definition) => definition,
            Err(complaint) => return out.push(format!("invalid: {complaint}")),
        };
        let name = name.as_str().into();
        let policy = Policy { name, pattern, apply_to, priority, definition };
        self.vhost.set_policy(self.now(), kind, policy);
    }

    pub(super) fn clear_policy(&mut self, kind: PolicyKind, name: &str, out: &mut Vec<String>) {
        if !self.vhost.clear_policy(self.now(), kind, name) {
            out.push("no such policy".to_owned());
        }
    }
}

/// The permissions of `user`: patterns for configure, write and read.
pub(super) fn access(user: &str, [configure, write, read]: [&str; 3]) -> Arc<Access> {
    let pattern = |text| PermissionPattern::new(text).unwrap();
    Arc::new(Access {
        user: user.into(),
        impersonator: false,
        permissions: Permissions {
            configure: pattern(configure),
            write: pattern(write),
            read: pattern(read),
        },
        topic_permissions: Vec::new(),
    })
}
