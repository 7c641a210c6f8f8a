//! RabbitMQ's management API, one file for each resource.
//!
//! A resource takes the node as state, who asks as an argument ([`crate::access`]: the type says which
//! tag is needed), and answers with [`crate::answer::Json`] or an error. Fields are RabbitMQ's; what the
//! node does not know is left out.

mod alarm_limits;
mod aliveness;
mod binding_changes;
mod bindings;
mod body;
mod browse;
mod channels;
mod cluster_name;
mod connections;
mod consumers;
mod dead_letter_map;
mod dead_letter_queues;
mod definitions;
mod details;
mod dry_run;
mod exchange_changes;
mod exchanges;
mod expiry;
mod explain;
mod extensions;
mod features;
mod fields;
mod get;
mod global_parameters;
mod health;
mod limits;
mod lists;
mod logins;
mod message_json;
pub(crate) mod node_actions;
mod nodes;
mod on_behalf;
mod overview;
mod parameters;
mod permissions;
mod policies;
mod publish;
mod queue_changes;
mod queues;
mod redrives;
mod reset;
mod topic_permissions;
mod users;
mod vhost_stats;
mod vhosts;
mod whoami;

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::routing::get;

use crate::Node;
use crate::answer::ApiError;

/// What every resource is about.
type Shared = Arc<dyn Node>;

/// The paths. Each of them is behind [`crate::access::guard`].
pub(crate) fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/overview", get(overview::show))
        .route("/api/cluster-name", get(cluster_name::show).put(cluster_name::set))
        .route("/api/whoami", get(whoami::show))
        .merge(alarm_limits::routes())
        .merge(binding_changes::routes())
        .merge(bindings::routes())
        .merge(browse::routes())
        .merge(channels::routes())
        .merge(connections::routes())
        .merge(consumers::routes())
        .merge(dead_letter_map::routes())
        .merge(dead_letter_queues::routes())
        .merge(definitions::routes())
        .merge(dry_run::routes())
        .merge(exchange_changes::routes())
        .merge(exchanges::routes())
        .merge(expiry::routes())
        .merge(explain::routes())
        .merge(extensions::routes())
        .merge(aliveness::routes())
        .merge(features::routes())
        .merge(get::routes())
        .merge(global_parameters::routes())
        .merge(health::routes())
        .merge(limits::routes())
        .merge(logins::routes())
        .merge(node_actions::routes())
        .merge(nodes::routes())
        .merge(parameters::routes())
        .merge(permissions::routes())
        .merge(policies::routes())
        .merge(publish::routes())
        .merge(queue_changes::routes())
        .merge(queues::routes())
        .merge(redrives::routes())
        .merge(reset::routes())
        .merge(topic_permissions::routes())
        .merge(users::routes())
        .merge(vhosts::routes())
}

/// The paths that are not, because whoever asks there has not logged in yet.
pub(crate) use logins::open_routes;

/// The one name in a path, decoded. A name that is no text is nobody's.
#[derive(Debug)]
pub(crate) struct Name(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(name)) => Ok(Self(name)),
            Err(_) => Err(ApiError::not_found()),
        }
    }
}

/// The two names in a path, decoded: a vhost and something in it.
#[derive(Debug)]
struct NameInVhost {
    vhost: String,
    name: String,
}

impl<S: Send + Sync> FromRequestParts<S> for NameInVhost {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Path::<(String, String)>::from_request_parts(parts, state).await {
            Ok(Path((vhost, name))) => Ok(Self { vhost, name }),
            Err(_) => Err(ApiError::not_found()),
        }
    }
}

/// The body of a request, as it is.
#[derive(Debug)]
pub(crate) struct Body(pub(crate) Bytes);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        match Bytes::from_request(request, state).await {
            Ok(body) => Ok(Self(body)),
            Err(error) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => {
                Err(ApiError::body_too_large())
            }
            Err(_) => Err(ApiError::bad_request("the body cannot be read")),
        }
    }
}
