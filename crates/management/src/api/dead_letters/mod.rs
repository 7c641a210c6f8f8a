//! Dead letters: where they go, the queues that hold them, and the history of deaths.

mod delays;
mod history;
mod map;
mod mapped;
mod merge;
mod queues;
mod selection;
mod warning_groups;

pub(crate) use merge::merge;
pub(crate) use selection::MapQuery;

use crate::http::routes::Routes;

/// The paths.
pub(super) fn routes() -> Routes {
    history::routes().merge(map::routes()).merge(queues::routes())
}
