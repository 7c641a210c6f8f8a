//! `/metrics/detailed`: the groups, vhosts and queues that the query names.

use std::collections::BTreeSet;

use broker::Pattern;

use crate::metrics::group::Group;

/// What a query asks for.
#[derive(Default, Debug)]
pub(super) struct DetailedQuery {
    /// The groups, in the order in which they are told.
    pub(super) groups: BTreeSet<Group>,
    /// None: all.
    vhosts: Option<Vec<String>>,
    /// What the names of queues must contain a match of.
    queue: Option<Pattern>,
}

impl DetailedQuery {
    /// Reads a query. Groups that do not exist are none.
    ///
    /// # Errors
    /// A sentence when the pattern of queues is none.
    pub(super) fn parse(query: &str) -> Result<Self, String> {
        let mut wanted = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "family" => {
                    let group = Group::ALL.iter().find(|group| group.as_str() == value);
                    wanted.groups.extend(group);
                }
                "vhost" => wanted.vhosts.get_or_insert_default().push(value.into_owned()),
                "queue" => {
                    // A filter works less than a pattern of a policy, and looks at case here.
                    let pattern = Pattern::filter(&format!("(?-i){value}"));
                    wanted.queue =
                        Some(pattern.map_err(|error| format!("Invalid 'queue' regex: {error}"))?);
                }
                _ => {}
            }
        }
        if wanted.groups.contains(&Group::Queue) {
            // It has them, too.
            wanted.groups.remove(&Group::QueueConsumerCount);
        }
        Ok(wanted)
    }

    /// Whether a vhost is wanted.
    pub(super) fn wants_vhost(&self, name: &str) -> bool {
        self.vhosts.as_ref().is_none_or(|vhosts| vhosts.iter().any(|vhost| vhost == name))
    }

    /// Whether a queue is wanted.
    pub(super) fn wants_queue(&self, name: &str) -> bool {
        self.queue.as_ref().is_none_or(|pattern| pattern.matches(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_names_groups_vhosts_and_queues() {
        let query = "family=queue_metrics&family=queue_consumer_count&family=no&family=vhost_status\
                     &vhost=%2F&vhost=b&queue=%5Ea";
        let wanted = DetailedQuery::parse(query).unwrap();
        assert_eq!(wanted.groups, [Group::Queue, Group::VhostStatus].into());
        assert_eq!(["/", "b", "c"].map(|vhost| wanted.wants_vhost(vhost)), [true, true, false]);
        assert_eq!(["ab", "ba", "Ab"].map(|queue| wanted.wants_queue(queue)), [true, false, false]);
        let all = DetailedQuery::parse("").unwrap();
        assert!(all.groups.is_empty() && all.wants_vhost("x") && all.wants_queue("x"));
        assert!(DetailedQuery::parse("queue=(").is_err());
    }
}
