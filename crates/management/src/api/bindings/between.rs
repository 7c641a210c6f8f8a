//! Bindings between one exchange and one queue or exchange: list, create, show and delete, each by its
//! properties key.

use axum::extract::{FromRequestParts, Path, State};
use axum::http::header::LOCATION;
use axum::http::request::Parts;
use axum::http::{HeaderName, StatusCode};
use axum::routing::get;
use broker::{Bind, Command};
use server::snapshot::topology::{BindingFilter, BindingSnapshot};

use crate::api::bindings::binding_json::{in_order, to_json};
use crate::api::bindings::properties_key::{means, properties_key, quoted};
use crate::api::list_query::{List, Query};
use crate::api::user_channel::{UserVhost, short};
use crate::http::access::Management;
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{Body, SharedNode, exchange_name};
use crate::http::fields::{Fields, text};
use crate::http::routes::Routes;
use crate::http::scope::Scope;
use crate::json::table::table_from_json;

/// The paths, for queues and exchanges as destinations.
pub(super) fn routes() -> Routes {
    let to = |kind: &str, to_queue: bool| {
        let ends = format!("/api/bindings/{{vhost}}/e/{{source}}/{kind}/{{destination}}");
        Routes::new()
            .route(
                &ends,
                Scope::Vhost("vhost"),
                get(move |node, caller, at, query| list(node, caller, at, query, to_queue))
                    .post(move |node, caller, at, body| make(node, caller, at, body, to_queue)),
            )
            .route(
                &format!("{ends}/{{key}}"),
                Scope::Vhost("vhost"),
                get(move |node, caller, at, query| show(node, caller, at, query, to_queue))
                    .delete(move |node, caller, at| remove(node, caller, at, to_queue)),
            )
    };
    to("q", true).merge(to("e", false))
}

/// The vhost and the two ends of bindings in a path, decoded.
#[derive(Debug)]
struct Ends {
    vhost: String,
    source: String,
    destination: String,
}

impl Ends {
    fn new(vhost: String, source: &str, destination: &str, to_queue: bool) -> Self {
        let destination = if to_queue { destination } else { exchange_name(destination) };
        Self {
            vhost,
            source: exchange_name(source).to_owned(),
            destination: destination.to_owned(),
        }
    }

    /// The bindings between the two ends.
    fn bindings(&self, node: &SharedNode, to_queue: bool) -> Vec<BindingSnapshot> {
        let mut bindings =
            node.bindings(&self.vhost, BindingFilter::Source(&self.source)).unwrap_or_default();
        bindings.retain(|one| *one.destination == *self.destination && one.to_queue == to_queue);
        bindings
    }
}

/// Names in a path, decoded.
#[derive(Debug)]
struct Names<const N: usize>([String; N]);

impl<S: Send + Sync, const N: usize> FromRequestParts<S> for Names<N> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let names = Path::<Vec<String>>::from_request_parts(parts, state).await;
        let names = names.ok().and_then(|Path(names)| names.try_into().ok());
        names.map(Self).ok_or_else(ApiError::not_found)
    }
}

async fn list(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Names([vhost, source, destination]): Names<3>,
    query: Query,
    to_queue: bool,
) -> Result<List, ApiError> {
    let user_vhost = UserVhost::for_existing(node, caller, vhost)?;
    let ends = Ends::new(user_vhost.vhost.clone(), &source, &destination, to_queue);
    let bindings = in_order(ends.bindings(user_vhost.node(), to_queue));
    query.unpaged().answer(bindings.iter().map(to_json).collect())
}

async fn show(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Names([vhost, source, destination, key]): Names<4>,
    query: Query,
    to_queue: bool,
) -> Result<Json, ApiError> {
    let user_vhost = UserVhost::for_existing(node, caller, vhost)?;
    let ends = Ends::new(user_vhost.vhost.clone(), &source, &destination, to_queue);
    Ok(Json::ok(query.select_columns(to_json(&find(&user_vhost, &ends, &key, to_queue)?))))
}

fn find(
    user_vhost: &UserVhost,
    ends: &Ends,
    key: &str,
    to_queue: bool,
) -> Result<BindingSnapshot, ApiError> {
    let mut bindings = ends.bindings(user_vhost.node(), to_queue).into_iter();
    bindings.find(|binding| means(key, binding)).ok_or_else(ApiError::not_found)
}

async fn make(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Names([vhost, source, destination]): Names<3>,
    Body(body): Body,
    to_queue: bool,
) -> Result<(StatusCode, [(HeaderName, String); 1]), ApiError> {
    let user_vhost = UserVhost::for_create(node, caller, vhost)?;
    let ends = Ends::new(user_vhost.vhost.clone(), &source, &destination, to_queue);
    let fields = Fields::read(&body)?;
    let arguments = fields.get("arguments").map(table_from_json).transpose()?.unwrap_or_default();
    // A null is no key: RabbitMQ accepts it, and makes a key of it that no message has.
    let key = fields.get("routing_key").filter(|key| !key.is_null());
    let key = key.map_or(Ok(""), |key| text("routing_key", key))?;
    let routing_key = short("routing_key", key)?;
    let bind = Bind {
        destination: short("destination", &ends.destination)?,
        source: short("source", &ends.source)?,
        routing_key,
        nowait: false,
        arguments: arguments.as_ref(),
    };
    user_vhost.perform(to_be_bound(bind, to_queue)).await?;
    let made = BindingSnapshot {
        vhost: ends.vhost.into(),
        source: ends.source.into(),
        destination: ends.destination.into(),
        to_queue,
        routing_key: routing_key.into(),
        arguments: arguments.as_ref().normalised(),
    };
    let location = format!("{}/{}", quoted(&destination), quoted(&properties_key(&made)));
    Ok((StatusCode::CREATED, [(LOCATION, location)]))
}

fn to_be_bound(bind: Bind<'_>, to_queue: bool) -> Command<'_> {
    if to_queue { Command::BindQueue(bind) } else { Command::BindExchange(bind) }
}

async fn remove(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Names([vhost, source, destination, key]): Names<4>,
    to_queue: bool,
) -> Result<StatusCode, ApiError> {
    let user_vhost = UserVhost::for_existing(node, caller, vhost)?;
    let ends = Ends::new(user_vhost.vhost.clone(), &source, &destination, to_queue);
    let binding = find(&user_vhost, &ends, &key, to_queue)?;
    let unbind = Bind {
        destination: &binding.destination,
        source: &binding.source,
        routing_key: &binding.routing_key,
        nowait: false,
        arguments: binding.arguments.as_ref(),
    };
    let command =
        if to_queue { Command::UnbindQueue(unbind) } else { Command::UnbindExchange(unbind) };
    user_vhost.perform(command).await?;
    Ok(StatusCode::NO_CONTENT)
}
