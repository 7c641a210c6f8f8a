//! The reasons why a link is not opened, each with its sentence, its code for the peer, and its name in metrics.

use crate::membership::ids::ClusterId;

/// The code of a refusal, for the peer and for metrics. Codes never change their meaning.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum RefusalCode {
    /// The peer does not speak the protocol of links.
    NotALink,
    /// The messages of the handshake are damaged or too long.
    Malformed,
    Version,
    /// The peer is this node.
    OwnNode,
    Secret,
    Cluster,
    /// The peer is not in the list of nodes.
    Node,
    /// Another node answers at the address of the peer.
    Name,
    /// The peer has another disk than the one that is remembered.
    Disk,
    /// The peer remembers another disk of this node.
    OwnDisk,
    /// Both nodes remember different disks of a third one.
    Disagreement,
    /// The handshake took too long.
    Timeout,
    Tls,
    /// `cluster.json` cannot be written.
    OwnFile,
    /// The connection has a purpose that the node does not serve.
    Purpose,
    /// The cluster is not founded, so that nothing but links is possible.
    NotFounded,
    /// The node has as many streams as it may have.
    Busy,
    /// The peer was forgotten.
    Forgotten,
    /// The peer does not read the records of the cluster.
    RecordLevel,
}

impl RefusalCode {
    /// All codes; the place of each is its number, less one.
    pub(crate) const ALL: [Self; 19] = [
        Self::NotALink,
        Self::Malformed,
        Self::Version,
        Self::OwnNode,
        Self::Secret,
        Self::Cluster,
        Self::Node,
        Self::Name,
        Self::Disk,
        Self::OwnDisk,
        Self::Disagreement,
        Self::Timeout,
        Self::Tls,
        Self::OwnFile,
        Self::Purpose,
        Self::NotFounded,
        Self::Busy,
        Self::Forgotten,
        Self::RecordLevel,
    ];

    /// Place among all codes.
    pub(crate) fn index(self) -> usize {
        let place = Self::ALL.iter().position(|code| *code == self);
        place.expect("all codes are in the list")
    }

    /// The number on the wire.
    pub(crate) fn as_u8(self) -> u8 {
        u8::try_from(self.index() + 1).expect("there are few codes")
    }

    /// The code of a number.
    pub(crate) fn from_u8(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// Value of the label `reason` in metrics.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::NotALink => "not_a_link",
            Self::Malformed => "malformed",
            Self::Version => "version",
            Self::OwnNode => "own_node",
            Self::Secret => "secret",
            Self::Cluster => "cluster",
            Self::Node => "node",
            Self::Name => "name",
            Self::Disk => "disk",
            Self::OwnDisk => "own_disk",
            Self::Disagreement => "disagreement",
            Self::Timeout => "timeout",
            Self::Tls => "tls",
            Self::OwnFile => "own_file",
            Self::Purpose => "purpose",
            Self::NotFounded => "not_founded",
            Self::Busy => "busy",
            Self::Forgotten => "forgotten",
            Self::RecordLevel => "record_level",
        }
    }

    /// The reason as the refused side reports it, after "the peer refuses links of this node: ".
    pub(crate) const fn as_told(self) -> &'static str {
        match self {
            Self::NotALink => "it does not understand this node's messages",
            Self::Malformed => "it cannot read this node's messages",
            Self::Version => "it speaks other versions of the protocol; see its log",
            Self::OwnNode => "it has the same name as this node",
            Self::Secret => "it has another secret (cluster.secret_file)",
            Self::Cluster => "it belongs to another cluster: its list of nodes differs",
            Self::Node => "its list of nodes does not name this node",
            Self::Name => "it expects another node at this node's address",
            Self::Disk => {
                "it knows this node with another disk: this node has lost its data, and may not take part, because it \
                 could vote twice"
            }
            Self::OwnDisk => "this node knows it with another disk: it has lost its data",
            Self::Disagreement => "both nodes remember different disks of a third one",
            Self::Timeout => "the handshake took too long",
            Self::Tls => "TLS failed; see its log",
            Self::OwnFile => "it cannot write its cluster.json; see its log",
            Self::Purpose => "it does not serve connections of this purpose",
            Self::NotFounded => "its cluster is not founded yet",
            Self::Busy => "it has no room for more streams",
            Self::Forgotten => {
                "its cluster has forgotten this node (forget_cluster_node), which takes no part any more; reset this \
                 node, and it can join again"
            }
            Self::RecordLevel => {
                "its cluster has a higher level of record kinds than this node reads: upgrade this node, or remove \
                 cluster.record_level from its configuration"
            }
        }
    }
}

/// A refusal with its details.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("the peer does not speak the protocol of links")]
    NotALink,
    #[error("the peer speaks TLS, and this node does not (cluster.tls.certfile)")]
    SpeaksTls,
    #[error("a message of the handshake is longer than any such message")]
    TooLong,
    #[error("a message of the handshake cannot be read")]
    Malformed,
    #[error("the peer speaks versions {oldest} to {newest} of the protocol, this node versions {} to {}; \
             update one of them", super::purpose::PROTOCOL.0, super::purpose::PROTOCOL.1)]
    Version { oldest: u16, newest: u16 },
    #[error(
        "the peer is this node itself: the address of another node leads here, or its messages come back"
    )]
    OwnNode,
    #[error("the peer has another secret; every node needs the same one (cluster.secret_file)")]
    Secret,
    #[error(
        "node '{name}' belongs to another cluster, {theirs}, this node to {ours}: their lists of nodes differ"
    )]
    Cluster { name: String, ours: ClusterId, theirs: ClusterId },
    #[error("node '{name}' is not in the list of nodes of the cluster")]
    Node { name: String },
    #[error(
        "node '{name}' was forgotten, and takes no part any more; it can join again after a reset"
    )]
    Forgotten { name: String },
    #[error(
        "node '{name}' reads records up to level {theirs}, and the cluster has level {ours}: upgrade the node, or remove \
         cluster.record_level from its configuration"
    )]
    RecordLevel { name: String, ours: u16, theirs: u16 },
    #[error("at {address} is node '{found}', not '{expected}' as {key} says")]
    Name { address: String, expected: String, found: String, key: String },
    #[error(
        "node '{name}' has another disk than this node remembers: it has lost its data, and could vote twice. Give it \
         its data back, or let it replace them: cluster.replace_lost_member = true in its configuration"
    )]
    Disk { name: String },
    #[error(
        "node '{name}' remembers another disk of this node: this node has lost its data, and takes no part, because it \
         could vote twice. Give it its data back, or start it without any and with cluster.replace_lost_member = true"
    )]
    OwnDisk { name: String },
    #[error(
        "node '{name}' remembers another disk of this node, whose data are lost: this one replaces it, and all data \
         come from the other nodes"
    )]
    NewDisk { name: String },
    #[error(
        "this node and node '{name}' remember different disks of node '{of}', and found no cluster: stop all nodes, \
         remove cluster.json from their data directories, and start them"
    )]
    Disagreement { name: String, of: String },
    #[error("the handshake took too long")]
    Timeout,
    #[error("TLS: {0}")]
    Tls(String),
    #[error("{0}")]
    OwnFile(String),
    #[error("the peer asks for purpose {0}, which this node does not serve")]
    Purpose(u8),
    #[error("the cluster is not founded: every node must have met every other one once")]
    NotFounded,
    #[error("there are {max} streams of this kind, as many as there may be")]
    Busy { max: usize },
    #[error("the last file descriptors are for the log")]
    Descriptors,
    #[error("the peer refuses links of this node: {}", .0.as_told())]
    FromPeer(RefusalCode),
}

impl Refusal {
    /// The node that is refused, or refuses, as far as its name is proved.
    pub(crate) fn node(&self) -> Option<&str> {
        match self {
            Self::Cluster { name, .. }
            | Self::Node { name }
            | Self::Forgotten { name }
            | Self::RecordLevel { name, .. }
            | Self::Disk { name }
            | Self::OwnDisk { name }
            | Self::NewDisk { name }
            | Self::Disagreement { name, .. } => Some(name),
            Self::NotALink
            | Self::SpeaksTls
            | Self::TooLong
            | Self::Malformed
            | Self::Version { .. }
            | Self::OwnNode
            | Self::Secret
            | Self::Name { .. }
            | Self::Timeout
            | Self::Tls(_)
            | Self::OwnFile(_)
            | Self::Purpose(_)
            | Self::NotFounded
            | Self::Busy { .. }
            | Self::Descriptors
            | Self::FromPeer(_) => None,
        }
    }

    /// The code, for the peer and for metrics.
    pub(crate) const fn code(&self) -> RefusalCode {
        match self {
            Self::NotALink => RefusalCode::NotALink,
            Self::SpeaksTls | Self::Tls(_) => RefusalCode::Tls,
            Self::TooLong | Self::Malformed => RefusalCode::Malformed,
            Self::Version { .. } => RefusalCode::Version,
            Self::OwnNode => RefusalCode::OwnNode,
            Self::Secret => RefusalCode::Secret,
            Self::Cluster { .. } => RefusalCode::Cluster,
            Self::Node { .. } => RefusalCode::Node,
            Self::Forgotten { .. } => RefusalCode::Forgotten,
            Self::RecordLevel { .. } => RefusalCode::RecordLevel,
            Self::Name { .. } => RefusalCode::Name,
            Self::Disk { .. } => RefusalCode::Disk,
            Self::OwnDisk { .. } | Self::NewDisk { .. } => RefusalCode::OwnDisk,
            Self::Disagreement { .. } => RefusalCode::Disagreement,
            Self::Timeout => RefusalCode::Timeout,
            Self::OwnFile(_) => RefusalCode::OwnFile,
            Self::Purpose(_) => RefusalCode::Purpose,
            Self::NotFounded => RefusalCode::NotFounded,
            Self::Busy { .. } | Self::Descriptors => RefusalCode::Busy,
            Self::FromPeer(code) => *code,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_numbers_and_names_of_their_own() {
        for code in RefusalCode::ALL {
            assert_eq!(RefusalCode::from_u8(code.as_u8()), Some(code));
            let same = RefusalCode::ALL.iter().filter(|other| other.as_str() == code.as_str());
            assert_eq!(same.count(), 1);
        }
        assert_eq!((RefusalCode::from_u8(0), RefusalCode::from_u8(20)), (None, None));
    }
}
