//! The notice with which a node tells another one which groups it leads that have no voter there.

use bytes::Bytes;

use super::error::FrameError;
use super::fields::Fields;
use super::header::FrameKind;
use super::node_pair::NodePair;
use crate::ids::GroupId;
use crate::limits::LEADS_PER_NOTICE_MAX;

/// Octets of a group with its term.
const LEAD_BYTES: usize = 16;

/// A notice to a node, as often as a ping. The receiver has no voter of the groups: it may not know otherwise where its
/// clients are served, and removes a replica that it still has and is to have no more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeadsNotice {
    /// The sender and the receiver.
    pub nodes: NodePair,
    /// Groups that the sender leads, each with the term; at most [`LEADS_PER_NOTICE_MAX`].
    pub leads: Vec<(GroupId, u64)>,
}

impl LeadsNotice {
    /// The notice as a frame.
    ///
    /// # Panics
    /// If there are too many groups.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        assert!(
            self.leads.len() <= LEADS_PER_NOTICE_MAX,
            "a notice has a bounded number of groups"
        );
        self.nodes.frame(FrameKind::Leads, |out| {
            for (group, term) in &self.leads {
                out.extend_from_slice(&group.0.to_le_bytes());
                out.extend_from_slice(&term.to_le_bytes());
            }
        })
    }

    /// Reads the payload of a frame.
    pub(super) fn read(payload: &[u8], nodes: NodePair) -> Result<Self, FrameError> {
        if payload.len() / LEAD_BYTES > LEADS_PER_NOTICE_MAX {
            return Err(FrameError::Malformed("too many groups"));
        }
        let mut fields = Fields::new(payload);
        let mut leads = Vec::with_capacity(payload.len() / LEAD_BYTES);
        while fields.len() > 0 {
            leads.push((GroupId(fields.u64()?), fields.number()?));
        }
        Ok(Self { nodes, leads })
    }
}
