//! Writes the history of dead letters of all vhosts to their files, in the background.

use std::sync::Arc;

use crate::limits::DEATH_WRITE_INTERVAL;
use crate::node::Node;

/// Writes new deaths at an interval, until the broker stops.
pub(crate) async fn run(node: Arc<Node>) {
    loop {
        tokio::time::sleep(DEATH_WRITE_INTERVAL).await;
        let writer = Arc::clone(&node);
        if tokio::task::spawn_blocking(move || write_all(&writer)).await.is_err() {
            tracing::error!("the history of deaths is not written any more");
            return;
        }
    }
}

/// Writes the deaths of all vhosts that are not written yet.
pub(in crate::node) fn write_all(node: &Node) {
    node.vhosts.all().iter().for_each(|handle| handle.write_deaths());
}
