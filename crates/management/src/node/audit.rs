//! Who has changed what.

use std::net::IpAddr;

/// A request that was to change something, and how it was answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AuditEntry<'a> {
    /// Who asked.
    pub user: &'a str,
    /// From where.
    pub peer: IpAddr,
    /// What was to happen.
    pub method: &'a str,
    /// To what: as it was sent, encoded, without a query.
    pub path: &'a str,
    /// The status of the answer.
    pub status: u16,
}

/// The memory of changes.
pub trait Audit {
    /// Writes down that somebody has asked for a change.
    fn audit(&self, entry: AuditEntry<'_>);
}
