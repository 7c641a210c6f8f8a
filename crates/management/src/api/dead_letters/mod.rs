//! Dead letters: where they go, and the queues that hold them.

mod map;
mod mapped;
mod queues;
mod selection;
mod warning_groups;

use axum::Router;

use crate::http::extract::SharedNode;

/// The paths.
pub(super) fn routes() -> Router<SharedNode> {
    map::routes().merge(queues::routes())
}
