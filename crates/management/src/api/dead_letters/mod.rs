//! Dead letters: where they go, and the queues that hold them.

mod map;
mod queues;

use axum::Router;

use crate::http::extract::SharedNode;

/// The paths.
pub(super) fn routes() -> Router<SharedNode> {
    map::routes().merge(queues::routes())
}
