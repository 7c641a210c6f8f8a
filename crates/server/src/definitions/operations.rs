//! Operations on a running node that are about definitions.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::{export_all, export_vhost, import_whole, preview_whole};
use crate::node::Node;
use crate::requests::{ImportError, ImportItems, ImportPreview, ImportRequest};

impl Node {
    /// The definitions of the whole node, as RabbitMQ exports them; the contents of these vhosts only, or of all.
    pub fn definitions(&self, only_vhosts: Option<&BTreeSet<String>>) -> Value {
        export_all(self, only_vhosts)
    }

    /// The definitions of a vhost.
    pub fn definitions_of(&self, vhost: &str) -> Option<Value> {
        export_vhost(self, vhost)
    }

    /// Imports definitions: all of them or none. The items that are left out.
    pub async fn import(
        self: &Arc<Self>,
        request: ImportRequest,
    ) -> Result<ImportItems, ImportError> {
        import_whole(self, request).await
    }

    /// The changes that an import would make.
    pub async fn preview_import(
        self: &Arc<Self>,
        request: ImportRequest,
    ) -> Result<ImportPreview, ImportError> {
        preview_whole(self, request).await
    }
}
