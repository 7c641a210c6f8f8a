//! The node itself: its certificates, its limit of free disk space, and the audit of requests.

use std::net::IpAddr;

use crate::snapshot::node::Listener;

/// A certificate file of the node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerCertificate {
    /// The listener that presents the certificate.
    pub listener: Listener,
    /// Path of the file.
    pub file: String,
    /// Seconds until the first certificate of the file expires, negative after that; none if the file is
    /// unreadable.
    pub expires_in_s: Option<i64>,
}

/// Free disk space below which publishers are blocked.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum DiskFreeLimit {
    /// A number of bytes.
    Absolute(u64),
    /// A multiple of the machine's memory.
    Relative(f64),
}

/// A changing request and the status of its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AuditEntry<'a> {
    /// Name of the user.
    pub user: &'a str,
    /// Address of the client.
    pub peer: IpAddr,
    /// Method of the request.
    pub method: &'a str,
    /// Path of the request: encoded, without the query.
    pub path: &'a str,
    /// Status of the answer.
    pub status: u16,
}
