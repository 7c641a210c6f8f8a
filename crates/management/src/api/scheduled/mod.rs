//! `/api/scheduled` and `/api/scheduled-counts`: messages before their delivery time, in queues and in delayed
//! exchanges. RabbitMQ has no such endpoints.

mod change;
mod counts;
mod item;
mod list;
mod one;
mod query;

pub(crate) use list::{limit, merge};

use axum::http::StatusCode;
use server::requests::{Caller, ScheduleError};

use crate::http::answer::{ApiError, refused_read};
use crate::http::extract::SharedNode;
use crate::http::routes::Routes;

/// The paths.
pub(super) fn routes() -> Routes {
    Routes::new().merge(list::routes()).merge(counts::routes()).merge(one::routes())
}

/// The vhosts whose scheduled messages a request without a vhost may show, in order.
fn visible_vhosts(node: &SharedNode, caller: &Caller) -> Vec<String> {
    let mut names = node.vhost_names();
    names.retain(|vhost| caller.can_enter(vhost));
    names.sort_unstable();
    names
}

impl From<ScheduleError> for ApiError {
    fn from(why: ScheduleError) -> Self {
        match why {
            ScheduleError::NoSuchVhost => Self::no_such_vhost(),
            ScheduleError::NoPermissions => Self::access_refused(),
            ScheduleError::Refused(refusal) => refused_read(&refusal),
            ScheduleError::Unreadable(problem) => Self::internal(problem),
        }
    }
}

/// True if a vhost has nothing to show to the caller: it was deleted meanwhile, or the caller, an administrator, has no
/// permissions there.
fn is_hidden(error: &ScheduleError) -> bool {
    matches!(error, ScheduleError::NoSuchVhost | ScheduleError::NoPermissions)
}

/// 404: no message waits under this name or number.
fn no_such_message(what: &str) -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "not_found", format!("no scheduled message {what}"))
}
