//! Comparison of the vhosts of two nodes: a vhost is replicated only if all nodes know it by the same id and name.

use std::collections::BTreeMap;

use super::ids::GroupId;

/// The groups of this node that a peer does not have in the same way, each with a sentence.
pub(crate) fn differences(
    own: &BTreeMap<GroupId, String>,
    peer: &str,
    theirs: &BTreeMap<GroupId, String>,
) -> BTreeMap<GroupId, String> {
    let mut differences = BTreeMap::new();
    for (id, name) in own {
        let other_id = theirs.iter().find(|(_, other)| *other == name).map(|(id, _)| id);
        let text = match (theirs.get(id), other_id) {
            (Some(other), _) if other == name => continue,
            (_, Some(other_id)) => format!(
                "vhost '{name}' has number {} here and {} on node '{peer}': it has no leader; remove it on one of the \
                 two, or found the cluster with the same definitions on every node",
                id.0, other_id.0
            ),
            (Some(other), None) => format!(
                "vhost '{name}' has number {}, which vhost '{other}' has on node '{peer}': it has no leader",
                id.0
            ),
            (None, None) => format!("node '{peer}' has no vhost '{name}': it has no leader"),
        };
        differences.insert(*id, text);
    }
    differences
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(all: &[(u64, &str)]) -> BTreeMap<GroupId, String> {
        all.iter().map(|(id, name)| (GroupId(*id), (*name).to_owned())).collect()
    }

    #[test]
    fn vhosts_differ_by_id_or_name() {
        let own = groups(&[(1, "/"), (2, "a"), (3, "b"), (4, "c")]);
        assert!(differences(&own, "b@h", &own).is_empty());
        let more = groups(&[(1, "/"), (2, "a"), (3, "b"), (4, "c"), (5, "d")]);
        assert!(differences(&own, "b@h", &more).is_empty());
        let told = differences(&own, "b@h", &groups(&[(1, "/"), (2, "b"), (4, "x")]));
        let told: Vec<(u64, &str)> =
            told.iter().map(|(id, text)| (id.0, text.split(':').next().unwrap())).collect();
        assert_eq!(
            told,
            [
                (2, "vhost 'a' has number 2, which vhost 'b' has on node 'b@h'"),
                (3, "vhost 'b' has number 3 here and 2 on node 'b@h'"),
                (4, "vhost 'c' has number 4, which vhost 'x' has on node 'b@h'"),
            ]
        );
    }
}
