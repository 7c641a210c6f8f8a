//! Dead letters: where they go, the queues that hold them, and the history of deaths.

mod delays;
mod history;
mod map;
mod mapped;
mod queues;
mod selection;
mod warning_groups;

use axum::Router;

use crate::http::extract::SharedNode;

/// The paths.
pub(super) fn routes() -> Router<SharedNode> {
    history::routes().merge(map::routes()).merge(queues::routes())
}
