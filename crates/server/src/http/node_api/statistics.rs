//! What was the case until now.

use management::SharedHistory;

use crate::node::Node;

impl management::Statistics for Node {
    fn history(&self) -> &SharedHistory {
        &self.history
    }
}
