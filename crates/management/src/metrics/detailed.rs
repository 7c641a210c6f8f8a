//! The query of `/metrics/detailed`: groups, vhosts and queues.

use std::collections::BTreeSet;

use broker::Pattern;

use crate::metrics::group::Group;

/// The selection of a query.
#[derive(Default, Debug)]
pub(super) struct DetailedQuery {
    /// The groups, in the order of the output.
    pub(super) groups: BTreeSet<Group>,
    /// Names of vhosts; none for all vhosts.
    vhosts: Option<Vec<String>>,
    /// Pattern in the names of queues; none for all queues.
    queue: Option<Pattern>,
}

impl DetailedQuery {
    /// Parses a query. Unknown groups are ignored.
    ///
    /// # Errors
    /// A sentence if the pattern of queues is invalid.
    pub(super) fn parse(query: &str) -> Result<Self, String> {
        let mut selection = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "family" => {
                    let group = Group::ALL.iter().find(|group| group.as_str() == value);
                    selection.groups.extend(group);
                }
                "vhost" => selection.vhosts.get_or_insert_default().push(value.into_owned()),
                "queue" => {
                    // A filter does less work than a pattern of a policy; matching is case-sensitive here.
                    let pattern = Pattern::filter(&format!("(?-i){value}"));
                    selection.queue =
                        Some(pattern.map_err(|error| format!("Invalid 'queue' regex: {error}"))?);
                }
                _ => {}
            }
        }
        if selection.groups.contains(&Group::Queue) {
            // `queue_metrics` contains it.
            selection.groups.remove(&Group::QueueConsumerCount);
        }
        Ok(selection)
    }

    /// True if the query selects the vhost.
    pub(super) fn selects_vhost(&self, name: &str) -> bool {
        self.vhosts.as_ref().is_none_or(|vhosts| vhosts.iter().any(|vhost| vhost == name))
    }

    /// True if the query selects the queue.
    pub(super) fn selects_queue(&self, name: &str) -> bool {
        self.queue.as_ref().is_none_or(|pattern| pattern.matches(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detailed_query_selects_groups_vhosts_and_queues() {
        let query = "family=queue_metrics&family=queue_consumer_count&family=no&family=vhost_status\
                     &vhost=%2F&vhost=b&queue=%5Ea";
        let query = DetailedQuery::parse(query).unwrap();
        assert_eq!(query.groups, [Group::Queue, Group::VhostStatus].into());
        assert_eq!(["/", "b", "c"].map(|vhost| query.selects_vhost(vhost)), [true, true, false]);
        assert_eq!(
            ["ab", "ba", "Ab"].map(|queue| query.selects_queue(queue)),
            [true, false, false]
        );
        let all = DetailedQuery::parse("").unwrap();
        assert!(all.groups.is_empty() && all.selects_vhost("x") && all.selects_queue("x"));
        assert!(DetailedQuery::parse("queue=(").is_err());
    }
}
