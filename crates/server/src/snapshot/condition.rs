//! The condition of the node at one moment: the numbers from which findings are made.

use std::net::IpAddr;

/// The condition of the node, beyond its memory and disk space.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct NodeCondition {
    /// Duration of the slowest write to a log within the last minutes, in microseconds.
    pub slowest_write_us: u64,
    /// Duration of the write to a log that is running, in microseconds; 0 if none is.
    pub running_write_us: u64,
    /// The last step of the wall clock; none since the start.
    pub clock_step: Option<ClockStep>,
    /// Vhosts whose log finds no room on the disk.
    pub vhosts_without_room: Vec<String>,
    /// Vhosts with pages that the disk did not take, and the number of these pages.
    pub unwritten_pages: Vec<(String, u64)>,
    /// Vhosts that are down because their files cannot be read, and the reasons.
    pub vhosts_down: Vec<(String, String)>,
    /// Vhosts whose log was damaged at the last start, and the number of damages.
    pub damaged_vhosts: Vec<(String, u64)>,
    /// Files that have changed since they were written and that nobody mends: vhost, and the file with its first damage.
    pub damaged_files: Vec<(String, String)>,
    /// Logins refused within the last minutes.
    pub refused_logins: Vec<RefusedLogins>,
    /// Connections refused within the last minutes.
    pub refused_connections: Vec<RefusedConnections>,
    /// True while no AMQP clients are accepted.
    pub are_listeners_suspended: bool,
    /// True while the node leads only what no other node can.
    pub is_drained: bool,
}

/// Refused logins of one user from one address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedLogins {
    /// Address of the client.
    pub source: IpAddr,
    /// Name that the client gave.
    pub user: String,
    /// Number of logins.
    pub count: u64,
}

/// Connections refused for one reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedConnections {
    /// The reason.
    pub reason: ConnectionRefusal,
    /// The vhost or the user of the limit, or the listener; empty for a limit of the node.
    pub of: String,
    /// Number of connections.
    pub count: u64,
}

/// The reason why a connection is refused or has to wait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ConnectionRefusal {
    /// No file descriptor is left.
    Descriptors,
    /// `connection_max` is reached.
    NodeLimit,
    /// `max-connections` of a vhost is reached.
    VhostLimit,
    /// `max-connections` of a user is reached.
    UserLimit,
}

/// A step of the wall clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockStep {
    /// Length of the step in milliseconds, negative if the clock was set back.
    pub step_ms: i64,
    /// Time since the step, in milliseconds.
    pub ago_ms: u64,
}
