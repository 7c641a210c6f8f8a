//! Definitions, out and in.

use std::sync::Arc;

use management::{Change, ImportProblem};

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
    ) -> Change<'static, Result<(), ImportProblem>> {
        let import = move || -> Result<Durable, ImportProblem> {
            let scope = vhost.as_deref().map_or(Scope::Node, Scope::Vhost);
            let imported = definitions::import(&self, &definitions, scope);
            // Perhaps some of it was made before the disk refused.
            let saved = self.save();
            let durable =
                imported.map_err(|error| ImportProblem::Definitions(error.in_rabbitmqs_order()))?;
            saved.map_err(|error| ImportProblem::Node(error.to_string()))?;
            Ok(durable)
        };
        Box::pin(async move {
            let imported = tokio::task::spawn_blocking(import).await;
            for (handle, lsn) in
                imported.map_err(|error| ImportProblem::Node(error.to_string()))??
            {
                handle.durable_at(lsn).await;
            }
            Ok(())
        })
    }
}
