//! Global parameters.

use std::sync::Arc;

use management::Change;

use crate::disk::node_file::NodeFileError;
use crate::node::Node;
use crate::node::global_parameters::{GlobalParameters, Parameter};

impl management::Parameters for Node {
    fn global_parameters(&self) -> Vec<(String, Parameter)> {
        self.global_parameters.all()
    }

    fn set_global_parameter(
        &self,
        name: &str,
        value: Parameter,
    ) -> Change<'_, Result<bool, String>> {
        if let Err(low_on_memory) = self.check_memory() {
            return Box::pin(std::future::ready(Err(low_on_memory.to_string())));
        }
        let name = name.to_owned();
        self.change_parameters(move |parameters| parameters.set(&name, value))
    }

    fn clear_global_parameter(&self, name: &str) -> Change<'_, Result<bool, String>> {
        let name = name.to_owned();
        self.change_parameters(move |parameters| parameters.clear(&name))
    }
}

impl Node {
    /// Changes them where the disk holds nobody up.
    fn change_parameters(
        &self,
        change: impl FnOnce(&GlobalParameters) -> Result<bool, NodeFileError> + Send + 'static,
    ) -> Change<'_, Result<bool, String>> {
        let parameters = Arc::clone(&self.global_parameters);
        Box::pin(async move {
            let changed = tokio::task::spawn_blocking(move || change(&parameters)).await;
            changed.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
        })
    }
}
