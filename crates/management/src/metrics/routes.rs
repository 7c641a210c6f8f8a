//! The paths of the metrics.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, RawQuery, Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{Extensions, HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use server::Node;

use crate::http::access::log_in;
use crate::http::allowance::Allowance;
use crate::http::answer::ApiError;
use crate::http::credentials::credentials;
use crate::limits::METRICS_PREFIX_BYTES_MAX;
use crate::memory;
use crate::metrics::detailed::DetailedQuery;
use crate::metrics::family::Detail;
use crate::metrics::group::Group;
use crate::metrics::pieces::pieces;
use crate::metrics::text::{Kind, Namespace, Text};
use crate::metrics::view::MetricsView;
use crate::metrics::{global, links, node, replicas};

/// The content type of Prometheus' text format.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Prefix of all names, unless the query sets another.
const PREFIX: &str = "rabbitmq";

/// The audience of names of vhosts and of objects in them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Audience {
    /// Everyone: the listener is for scrapers only, as RabbitMQ's.
    Everybody,
    /// Monitors who log in. Others get sums over the node.
    Monitors,
}

/// True if the answer may contain names.
#[derive(Clone, Copy, Debug)]
struct NamesAllowed(bool);

/// The paths.
pub(crate) fn routes(node: &Arc<Node>, audience: Audience) -> Router<Arc<Node>> {
    let state = (Arc::clone(node), audience);
    paths().route_layer(from_fn_with_state(state, admit))
}

/// Decides if the answer may contain names, and refuses the paths that are useless without names.
async fn admit(
    State((node, audience)): State<(Arc<Node>, Audience)>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Response {
    let may = match audience {
        Audience::Everybody => Ok(true),
        Audience::Monitors => {
            let is_about_names =
                ["/metrics/per-object", "/metrics/detailed"].contains(&request.uri().path());
            let (headers, extensions) = (request.headers(), request.extensions());
            may_see_names(&node, peer.ip(), headers, extensions, is_about_names).await
        }
    };
    match may {
        Ok(may) => {
            request.extensions_mut().insert(NamesAllowed(may));
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

async fn may_see_names(
    node: &Node,
    peer: IpAddr,
    headers: &HeaderMap,
    extensions: &Extensions,
    is_about_names: bool,
) -> Result<bool, ApiError> {
    if !headers.contains_key(AUTHORIZATION) && !is_about_names {
        return Ok(false);
    }
    let credentials = credentials(headers)?;
    let caller = log_in(node, peer, headers, extensions, credentials).await?;
    match caller.is_monitor() {
        true => Ok(true),
        false if is_about_names => Err(ApiError::not_authorised("Not monitor user")),
        false => Ok(false),
    }
}

fn paths() -> Router<Arc<Node>> {
    Router::new()
        .route(
            "/metrics",
            get(|node, query, names, memory| {
                aggregated(node, query, names, memory, Detail::Totals)
            }),
        )
        .route(
            "/metrics/per-object",
            get(|node, query, names, memory| {
                aggregated(node, query, names, memory, Detail::PerObject)
            }),
        )
        .route("/metrics/detailed", get(detailed))
        .route("/metrics/memory-breakdown", get(memory_breakdown))
}

/// Answers `/metrics` and `/metrics/per-object`.
async fn aggregated(
    State(node): State<Arc<Node>>,
    RawQuery(query): RawQuery,
    Extension(NamesAllowed(names_allowed)): Extension<NamesAllowed>,
    allowance: Allowance,
    detail: Detail,
) -> Response {
    answer(node, query, allowance, move |node, text| {
        let scrape = node.scrape(&|_| true);
        let (view, endpoint) = match detail {
            Detail::Totals => (MetricsView::totals(&scrape), "aggregated"),
            Detail::PerObject => {
                (MetricsView::each(&scrape, Namespace::Plain, |_| true), "per-object")
            }
        };
        for group in Group::ALL.into_iter().filter(|group| group.is_general()) {
            if names_allowed || !group.names_vhosts() {
                view.write(text, group);
            }
        }
        view.queue_info(text);
        node::write(text, Namespace::Plain, &node::TOTALS, &scrape);
        node::identity(text, endpoint, &scrape);
        global::write(text, &scrape.vhosts);
        node::write(text, Namespace::Plain, &node::ALARMS, &scrape);
        links::write(text, Namespace::Plain, &scrape.cluster, names_allowed);
        replicas::write(text, &scrape.cluster.replication, names_allowed);
        node::started(text, &scrape);
    })
    .await
}

/// Answers `/metrics/detailed`.
async fn detailed(
    State(node): State<Arc<Node>>,
    RawQuery(query): RawQuery,
    allowance: Allowance,
) -> Response {
    let selection = match DetailedQuery::parse(query.as_deref().unwrap_or_default()) {
        Ok(selection) => selection,
        Err(error) => return refused(error),
    };
    answer(node, query, allowance, move |node, text| {
        let scrape = node.scrape(&|vhost| selection.selects_vhost(vhost));
        let view = MetricsView::each(&scrape, Namespace::Detailed, |queue| {
            selection.selects_queue(&queue.name)
        });
        for group in &selection.groups {
            view.write(text, *group);
        }
        if selection.groups.iter().any(|group| group.is_of_queues()) {
            view.queue_info(text);
        }
        node::identity(text, "detailed", &scrape);
    })
    .await
}

async fn memory_breakdown(
    State(node): State<Arc<Node>>,
    RawQuery(query): RawQuery,
    allowance: Allowance,
) -> Response {
    answer(node, query, allowance, |node, text| {
        for part in memory::parts(node) {
            let name = format!("memory_{}_bytes", part.metric);
            let help = format!("Memory of what RabbitMQ calls {} in its API", part.name);
            text.family(Namespace::Plain, &name, Kind::Gauge, &help).put("", part.bytes);
        }
        node::identity(text, "memory-breakdown", &node.scrape(&|_| false));
    })
    .await
}

/// Answers with the text that `write` writes, with the prefix of the query.
async fn answer(
    node: Arc<Node>,
    query: Option<String>,
    allowance: Allowance,
    write: impl FnOnce(&Node, &mut Text) + Send + 'static,
) -> Response {
    let prefix = match prefix(query.as_deref().unwrap_or_default()) {
        Ok(prefix) => prefix,
        Err(error) => return refused(error),
    };
    let (sender, receiver) = pieces(allowance);
    let writer = Arc::clone(&node);
    node.format_aside(move || {
        if sender.is_over() {
            return;
        }
        let mut text = Text::new(&prefix, sender);
        write(&writer, &mut text);
        text.finish();
    });
    receiver.answer([(CONTENT_TYPE, PROMETHEUS)]).await
}

/// The prefix of names. As in LavinMQ, the query may set it.
fn prefix(query: &str) -> Result<String, String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let Some((_, prefix)) = pairs.find(|(name, _)| name == "prefix") else {
        return Ok(PREFIX.to_owned());
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    if prefix.is_empty()
        || prefix.len() > METRICS_PREFIX_BYTES_MAX
        || prefix.starts_with(|c: char| c.is_ascii_digit())
        || !prefix.chars().all(is_name)
    {
        return Err(format!(
            "A prefix has 1 to {METRICS_PREFIX_BYTES_MAX} letters, digits and underscores and does \
             not begin with a digit"
        ));
    }
    Ok(prefix.into_owned())
}

/// The answer to an invalid query.
fn refused(reason: String) -> Response {
    (StatusCode::BAD_REQUEST, [(CONTENT_TYPE, "text/plain")], reason).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_is_the_start_of_a_metric_name() {
        assert_eq!(prefix("").as_deref(), Ok("rabbitmq"));
        assert_eq!(prefix("family=x&prefix=my_broker").as_deref(), Ok("my_broker"));
        for none in ["", "1a", "a b", "a%0Ab", "ä", &"a".repeat(65)] {
            assert!(prefix(&format!("prefix={none}")).is_err(), "{none}");
        }
    }
}
