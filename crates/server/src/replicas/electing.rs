//! The chance of a vhost to get a leader soon, for which a client may wait.

/// True if the members of a group may elect a leader that this node can reach: it hears a majority of them, itself included.
/// A node that is none of them learns of a leader from whichever of them leads.
pub(super) fn may_elect(is_member: bool, heard: impl Iterator<Item = bool>) -> bool {
    let (mut hears, mut members) = (0_usize, 0_usize);
    for is_heard in heard {
        hears += usize::from(is_heard);
        members += 1;
    }
    if is_member { hears * 2 > members } else { hears > 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn election_needs_a_majority_that_this_node_hears() {
        let may = |is_member, heard: &[bool]| may_elect(is_member, heard.iter().copied());
        assert!(may(true, &[true]) && may(true, &[true, false, true]));
        assert!(!may(true, &[true, false, false]) && !may(true, &[true, false]));
        // Of a vhost elsewhere, any of its nodes may be the leader.
        assert!(may(false, &[false, false, true]) && !may(false, &[false, false, false]));
        assert!(!may(true, &[]));
    }
}
