//! The purpose of a connection between two nodes, and the versions of their protocol.

/// Oldest and newest version of the protocol that this build speaks: 1 has links only, 2 has streams as well, 3 lets nodes
/// join.
pub(crate) const PROTOCOL: (u16, u16) = (1, 3);

/// The purpose of a connection between two nodes. All but a link are streams: one dialogue, whose octets the nodes leave
/// to the handler of the purpose.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Purpose {
    /// The one link of two nodes.
    Link,
    /// A client of the dialer works in a vhost that the acceptor leads.
    Client,
    /// The dialer passes on a request over HTTP.
    Http,
    /// The dialer fetches files of a vhost.
    Shipment,
    /// The dialer asks to join the cluster of the acceptor, which need not know it.
    Join,
}

impl Purpose {
    /// All purposes; the place of each is its number on the wire.
    pub(crate) const ALL: [Self; 5] =
        [Self::Link, Self::Client, Self::Http, Self::Shipment, Self::Join];

    /// The number on the wire.
    pub(crate) const fn as_u8(self) -> u8 {
        match self {
            Self::Link => 0,
            Self::Client => 1,
            Self::Http => 2,
            Self::Shipment => 3,
            Self::Join => 4,
        }
    }

    /// The purpose of a number.
    pub(crate) fn from_u8(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}
