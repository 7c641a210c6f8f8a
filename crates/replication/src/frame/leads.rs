//! The notice with which a node tells another one which groups it leads that have no voter there.

use bytes::Bytes;
use storage::{EntryIndex, Term};

use super::error::FrameError;
use super::fields::Fields;
use super::header::FrameKind;
use super::node_pair::NodePair;
use crate::ids::GroupId;
use crate::limits::LEADS_PER_NOTICE_MAX;

/// Octets of a group in a notice.
const LED_BYTES: usize = 24;

/// A group that the sender of a notice leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LedGroup {
    /// The group.
    pub group: GroupId,
    /// The term in which the sender leads it.
    pub term: Term,
    /// The last entry that is committed, as of which the group has no member on the receiver; 0 if it has a learner there,
    /// or had a member lately.
    pub without: EntryIndex,
}

/// A notice to a node, as often as a ping. The receiver has no voter of the groups: it may not know otherwise where its
/// clients are served, and removes a replica that it still has and is to have no more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeadsNotice {
    /// The sender and the receiver.
    pub nodes: NodePair,
    /// Groups that the sender leads, at most [`LEADS_PER_NOTICE_MAX`].
    pub led: Vec<LedGroup>,
}

impl LeadsNotice {
    /// The notice as a frame.
    ///
    /// # Panics
    /// If there are too many groups.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        assert!(self.led.len() <= LEADS_PER_NOTICE_MAX, "a notice has a bounded number of groups");
        self.nodes.frame(FrameKind::Leads, |out| {
            for LedGroup { group, term, without } in &self.led {
                for number in [group.0, term.0, without.0] {
                    out.extend_from_slice(&number.to_le_bytes());
                }
            }
        })
    }

    /// Reads the payload of a frame.
    pub(super) fn read(payload: &[u8], nodes: NodePair) -> Result<Self, FrameError> {
        if payload.len() / LED_BYTES > LEADS_PER_NOTICE_MAX {
            return Err(FrameError::Malformed("too many groups"));
        }
        let mut fields = Fields::new(payload);
        let mut led = Vec::with_capacity(payload.len() / LED_BYTES);
        while fields.len() > 0 {
            led.push(LedGroup {
                group: GroupId(fields.u64()?),
                term: Term(fields.number()?),
                without: EntryIndex(fields.number()?),
            });
        }
        Ok(Self { nodes, led })
    }
}
