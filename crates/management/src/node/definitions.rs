//! Definitions: everything that is declared, as one document.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::Change;

/// Why definitions are not imported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ImportProblem {
    /// What is wrong with them, and where.
    Definitions(String),
    /// What is wrong here.
    Node(String),
}

/// Export and import.
pub trait Definitions {
    /// Everything, as RabbitMQ exports it.
    fn definitions(&self) -> Value;

    /// What is in a vhost, if there is one of that name.
    fn definitions_of(&self, vhost: &str) -> Option<Value>;

    /// Makes what `definitions` say, everywhere or in this vhost, which exists; all of it or nothing.
    fn import(
        self: Arc<Self>,
        vhost: Option<String>,
        definitions: Map<String, Value>,
    ) -> Change<'static, Result<(), ImportProblem>>;
}
