//! Changes of the members of a group, one at a time.

use bytes::Bytes;

use crate::ids::MemberId;
use crate::limits::MEMBERSHIP_BYTES_MAX;

/// A change of the members, as the content of an entry.
///
/// A member becomes a voter in two steps: it is added as a learner, gets all entries, and is promoted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MembershipChange {
    /// A member that receives and does not vote.
    AddLearner(MemberId),
    /// A learner votes from now on.
    Promote(MemberId),
    /// A member leaves.
    Remove(MemberId),
}

/// Octets of an encoded change: its version, its kind, the member.
const BYTES: usize = 10;
const _: () = assert!(BYTES <= MEMBERSHIP_BYTES_MAX);
const VERSION: u8 = 1;

impl MembershipChange {
    /// The member that the change is about.
    #[must_use]
    pub fn member(self) -> MemberId {
        match self {
            Self::AddLearner(member) | Self::Promote(member) | Self::Remove(member) => member,
        }
    }

    /// The change as the content of an entry.
    #[must_use]
    pub fn encode(self) -> Bytes {
        let kind = match self {
            Self::AddLearner(_) => 1,
            Self::Promote(_) => 2,
            Self::Remove(_) => 3,
        };
        let mut out = vec![VERSION, kind];
        out.extend(self.member().get().to_le_bytes());
        out.into()
    }

    /// The change in the content of an entry. `None` if this build does not know it.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
        let [version, kind, member @ ..] = *bytes;
        let member = MemberId::new(u64::from_le_bytes(member))?;
        match (version, kind) {
            (VERSION, 1) => Some(Self::AddLearner(member)),
            (VERSION, 2) => Some(Self::Promote(member)),
            (VERSION, 3) => Some(Self::Remove(member)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_is_read_as_it_was_written() {
        let member = MemberId::new(0x0007_0002).unwrap();
        for change in [
            MembershipChange::AddLearner(member),
            MembershipChange::Promote(member),
            MembershipChange::Remove(member),
        ] {
            assert_eq!(MembershipChange::decode(&change.encode()), Some(change));
        }
    }

    #[test]
    fn other_octets_are_no_change() {
        let octets = MembershipChange::Remove(MemberId::new(0x0007_0002).unwrap()).encode();
        assert_eq!(MembershipChange::decode(&octets[..9]), None);
        for (at, value) in [(0, 2), (1, 0), (1, 4)] {
            let mut changed = octets.to_vec();
            changed[at] = value;
            assert_eq!(MembershipChange::decode(&changed), None);
        }
    }
}
