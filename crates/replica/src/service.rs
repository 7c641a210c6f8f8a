//! The part of this node in the service of a vhost, and so the effects of a committed entry on it.

use storage::Term;

/// The part of this node in the service of a vhost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Service {
    /// Committed entries are applied to the replica.
    Follows,
    /// The node is elected in this term; the replica applies what is left and becomes the vhost.
    Promotes(Term),
    /// The vhost serves clients, in this term.
    Leads(Term),
    /// Another node leads after this one did: the replica must be opened anew.
    Deposed,
}

/// The effects of a committed entry on the vhost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effects {
    /// The replica has to apply the entry.
    Due,
    /// The vhost of this node, which led, has them already.
    There,
    /// Another leader's entry reaches a node that has not noticed yet that it leads no more: it is applied when the
    /// replica is opened anew.
    AfterReopening,
}

/// The effects of an entry of `term`; `is_own` if this node has proposed it.
pub(crate) fn effects(service: Service, term: Term, is_own: bool) -> Effects {
    match service {
        Service::Follows if !is_own => Effects::Due,
        Service::Promotes(led) | Service::Leads(led) if !is_own && term > led => {
            Effects::AfterReopening
        }
        // What its last leader left is applied before it is promoted, behind all that waits.
        Service::Promotes(led) if !is_own && term < led => Effects::Due,
        Service::Follows | Service::Promotes(_) | Service::Leads(_) | Service::Deposed => {
            Effects::There
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A leader that stood still since it was elected comes back, and has entries of its successor in the same turn in
    /// which it learns of the successor.
    #[test]
    fn entries_of_another_leader_wait_until_a_deposed_replica_is_opened_anew() {
        let led = Term(5);
        for service in [Service::Promotes(led), Service::Leads(led)] {
            assert_eq!(effects(service, Term(6), false), Effects::AfterReopening, "{service:?}");
            assert_eq!(effects(service, led, true), Effects::There, "{service:?}");
            assert_eq!(effects(service, led, false), Effects::There, "{service:?}");
        }
        assert_eq!(effects(Service::Follows, Term(6), false), Effects::Due);
    }
}
