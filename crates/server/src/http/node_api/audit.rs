//! Who has changed what: a line of the log for each request.

use management::AuditEntry;

use crate::node::Node;

impl management::Audit for Node {
    fn audit(&self, entry: AuditEntry<'_>) {
        let AuditEntry { user, peer, method, path, status } = entry;
        tracing::info!(user, %peer, method, path, status, "asked over HTTP for a change");
    }
}
