//! Definitions, out and in.

use std::sync::Arc;

use management::Change;

use crate::definitions::{self, Document, Durable, Exported, Scope};
use crate::node::Node;

impl management::Definitions for Node {
    fn definitions(&self) -> Exported {
        definitions::export_all(self)
    }

    fn definitions_of(&self, vhost: &str) -> Option<Exported> {
        definitions::export_vhost(self, vhost)
    }

    fn import(
        self: Arc<Self>,
        vhost: Option<String>,
        definitions: Document,
    ) -> Change<'static, Result<(), String>> {
        let import = move || -> Result<Durable, String> {
            let scope = vhost.as_deref().map_or(Scope::Node, Scope::Vhost);
            let imported = definitions::import(&self, &definitions, scope);
            let saved = self.save();
            // Perhaps some of it was made before the disk refused.
            let durable = imported.map_err(|error| error.in_rabbitmqs_order())?;
            saved.map_err(|error| error.to_string())?;
            Ok(durable)
        };
        Box::pin(async move {
            let imported = tokio::task::spawn_blocking(import).await;
            for (cell, lsn) in imported.map_err(|error| error.to_string())?? {
                cell.durable_at(lsn).await;
            }
            Ok(())
        })
    }
}
