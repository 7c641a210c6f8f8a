//! Metrics in Prometheus' text format, under RabbitMQ's names where RabbitMQ has them.
//!
//! What is the case is copied first (`scrape`) and written afterwards, away from the threads that serve
//! clients. Families stand in tables by what they are about (`node`, `queues`, `clients`, `exchanges`,
//! `global`, `deaths`), in the groups that RabbitMQ's `/metrics/detailed` knows (`group`, `told`).
//!
//! - `/metrics`: sums over all objects
//! - `/metrics/per-object`: every object for itself
//! - `/metrics/detailed`: the groups, vhosts and queues that are asked for
//! - `/metrics/memory-breakdown`: what memory is for

mod clients;
mod deaths;
mod detailed;
mod exchanges;
mod family;
mod global;
mod group;
mod node;
mod queues;
mod scrape;
mod sums;
mod text;
mod told;

use std::sync::Arc;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::limits::METRICS_PREFIX_BYTES_MAX;
use crate::memory;
use crate::node::Node;
use detailed::Wanted;
use group::Group;
use text::{Kind, Namespace, Text};
use told::Told;

pub use scrape::{ConnectionScrape, Scrape, Scraping, VhostScrape};

/// The content type of Prometheus' text format.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What all names begin with, unless the request says otherwise.
const PREFIX: &str = "rabbitmq";

/// Whether objects are told apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Detail {
    Totals,
    PerObject,
}

/// The paths, none of which asks for a login.
pub(crate) fn routes() -> Router<Arc<dyn Node>> {
    Router::new()
        .route("/metrics", get(|node, query| general(node, query, Detail::Totals)))
        .route("/metrics/per-object", get(|node, query| general(node, query, Detail::PerObject)))
        .route("/metrics/detailed", get(chosen))
        .route("/metrics/memory-breakdown", get(memory_breakdown))
}

/// What nobody chose groups for.
async fn general(
    State(node): State<Arc<dyn Node>>,
    RawQuery(query): RawQuery,
    detail: Detail,
) -> Response {
    answer(node, query, move |node, text| {
        let scrape = node.scrape(&|_| true);
        let (told, endpoint) = match detail {
            Detail::Totals => (Told::totals(&scrape), "aggregated"),
            Detail::PerObject => (Told::each(&scrape, Namespace::Plain, |_| true), "per-object"),
        };
        for group in Group::ALL.into_iter().filter(|group| group.is_general()) {
            told.write(text, group);
        }
        told.queue_info(text);
        node::write(text, Namespace::Plain, &node::TOTALS, &scrape);
        node::identity(text, endpoint, &scrape);
        global::write(text, &scrape.vhosts);
        node::write(text, Namespace::Plain, &node::ALARMS, &scrape);
        node::started(text, &scrape);
    })
    .await
}

/// What the query names.
async fn chosen(State(node): State<Arc<dyn Node>>, RawQuery(query): RawQuery) -> Response {
    let wanted = match Wanted::parse(query.as_deref().unwrap_or_default()) {
        Ok(wanted) => wanted,
        Err(error) => return refused(error),
    };
    answer(node, query, move |node, text| {
        let scrape = node.scrape(&|vhost| wanted.wants_vhost(vhost));
        let told =
            Told::each(&scrape, Namespace::Detailed, |queue| wanted.wants_queue(&queue.name));
        for group in &wanted.groups {
            told.write(text, *group);
        }
        if wanted.groups.iter().any(|group| group.is_of_queues()) {
            told.queue_info(text);
        }
        node::identity(text, "detailed", &scrape);
    })
    .await
}

async fn memory_breakdown(
    State(node): State<Arc<dyn Node>>,
    RawQuery(query): RawQuery,
) -> Response {
    answer(node, query, |node, text| {
        for part in memory::parts(node) {
            let name = format!("memory_{}_bytes", part.metric);
            let help = format!("Memory of what RabbitMQ calls {} in its API", part.name);
            text.family(Namespace::Plain, &name, Kind::Gauge, &help).put("", part.bytes);
        }
        node::identity(text, "memory-breakdown", &node.scrape(&|_| false));
    })
    .await
}

/// Answers with what `write` writes, with the prefix that the query wants.
async fn answer(
    node: Arc<dyn Node>,
    query: Option<String>,
    write: impl FnOnce(&dyn Node, &mut Text) + Send + 'static,
) -> Response {
    let prefix = match prefix(query.as_deref().unwrap_or_default()) {
        Ok(prefix) => prefix,
        Err(error) => return refused(error),
    };
    let writer = Arc::clone(&node);
    let text = node.aside(Box::new(move || {
        let mut text = Text::new(&prefix);
        write(&*writer, &mut text);
        text.into_string()
    }));
    ([(CONTENT_TYPE, PROMETHEUS)], text.await).into_response()
}

/// What the names are to begin with: as in LavinMQ, whoever asks may choose.
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

/// The query cannot be understood.
fn refused(reason: String) -> Response {
    (StatusCode::BAD_REQUEST, [(CONTENT_TYPE, "text/plain")], reason).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_the_beginning_of_a_name() {
        assert_eq!(prefix("").as_deref(), Ok("rabbitmq"));
        assert_eq!(prefix("family=x&prefix=my_broker").as_deref(), Ok("my_broker"));
        for none in ["", "1a", "a b", "a%0Ab", "ä", &"a".repeat(65)] {
            assert!(prefix(&format!("prefix={none}")).is_err(), "{none}");
        }
    }
}
