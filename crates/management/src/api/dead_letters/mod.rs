//! Dead letters: where they go, the queues that hold them, and the history of deaths.

mod delays;
mod history;
mod map;
mod mapped;
mod merge;
mod queues;
mod selection;
mod warning_groups;

use axum::Router;

pub(crate) use merge::merge;
pub(crate) use selection::MapQuery;

use crate::http::extract::SharedNode;

/// The paths.
pub(super) fn routes() -> Router<SharedNode> {
    history::routes().merge(map::routes()).merge(queues::routes())
}
