//! Global parameters.

use serde_json::Value;

use super::Change;

/// What is kept at the node by name.
pub trait Parameters {
    /// All of them, by name.
    fn global_parameters(&self) -> Vec<(String, Value)>;

    /// Adds or replaces one: whether it is new, or what the disk says.
    fn set_global_parameter(&self, name: &str, value: Value) -> Change<'_, Result<bool, String>>;

    /// Removes one: whether there was one, or what the disk says.
    fn clear_global_parameter(&self, name: &str) -> Change<'_, Result<bool, String>>;
}
