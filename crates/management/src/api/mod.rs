//! RabbitMQ's management API: one file, or one folder, per resource.
//!
//! A handler takes the node as state, the caller as an extractor of [`crate::http::access`] whose type says
//! which tag is required, and answers with [`crate::http::answer::Json`] or an error. Fields are RabbitMQ's;
//! unknown values are left out.

mod backup;
mod bindings;
mod clients;
pub(crate) mod dead_letters;
pub(crate) mod definitions;
mod exchanges;
mod features;
mod file_check;
pub(crate) mod health;
mod list_query;
pub(crate) mod nodes;
mod overview;
mod parameters;
mod policies;
pub(crate) mod queues;
mod quorum;
mod rates;
mod redrives;
mod replicas;
mod reset;
mod row;
pub(crate) mod scheduled;
mod user_channel;
mod users;
pub(crate) mod vhosts;

use axum::routing::get;

use crate::http::routes::Routes;
use crate::http::scope::Scope;

pub(crate) use list_query::{PART, PartCounts, Place, Query};

/// All paths behind [`crate::http::access::guard`].
pub(crate) fn routes() -> Routes {
    Routes::new()
        .route("/api/overview", Scope::Overview, get(overview::show))
        .route("/api/config/effective", Scope::Here, get(overview::configuration))
        .merge(backup::routes())
        .merge(file_check::routes())
        .merge(bindings::routes())
        .merge(clients::routes())
        .merge(dead_letters::routes())
        .merge(definitions::routes())
        .merge(exchanges::routes())
        .merge(features::routes())
        .merge(health::routes())
        .merge(nodes::routes())
        .merge(parameters::routes())
        .merge(policies::routes())
        .merge(queues::routes())
        .merge(quorum::routes())
        .merge(redrives::routes())
        .merge(replicas::routes())
        .merge(reset::routes())
        .merge(scheduled::routes())
        .merge(users::routes())
        .merge(vhosts::routes())
}

/// Paths outside the guard, for callers who have not logged in yet.
pub(crate) use users::logins::open_routes;
