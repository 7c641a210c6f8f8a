//! The documentation: pages rendered from Markdown when the program is built, for readers without a network.
//!
//! They need no login, because they contain only what the source contains.

use axum::Router;
use axum::extract::{OriginalUri, Path};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;

use crate::http::answer::ApiError;

/// Path and content of every page and drawing, ordered by path.
const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/docs.rs"));

/// The page about command line tools, at RabbitMQ's address.
const TOOLS: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Command line tools</title></head>\n\
    <body><h1>Command line tools</h1>\n\
    <p>rabbitmqadmin works with this broker unchanged. \
    <a href=\"../docs/reference/leveretctl.html\">leveretctl</a> has the commands of rabbitmqctl.</p></body></html>\n";

/// The paths, equal for a running and a stopped node.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/api/index.html", get(async || answer("api/index.html")))
        // The middleware removes the slash of `/api/`.
        .route("/api", get(async |uri| moved(uri, "/api", "/api/index.html")))
        .route("/doc/stats.html", get(async |uri| moved(uri, "/doc/stats.html", "/api/index.html")))
        .route("/cli", get(async |uri| moved(uri, "/cli", "/cli/index.html")))
        .route("/cli/index.html", get(async || Html(TOOLS)))
        .route("/docs", get(async |uri| moved(uri, "/docs", "/docs/index.html")))
        .route(
            "/docs/{*name}",
            get(async |Path(name): Path<String>| answer(&format!("docs/{name}"))),
        )
}

/// Redirects from an address of RabbitMQ, as it does: below the prefix of the address that the client sent.
fn moved(OriginalUri(uri): OriginalUri, from: &str, to: &str) -> impl IntoResponse {
    let sent = uri.path().trim_end_matches('/');
    let prefix = sent.strip_suffix(from).unwrap_or_default();
    (StatusCode::MOVED_PERMANENTLY, [(LOCATION, format!("{prefix}{to}"))])
}

fn answer(name: &str) -> Response {
    let found = PAGES.binary_search_by(|(path, _)| (*path).cmp(name));
    let Some((path, text)) = found.ok().and_then(|at| PAGES.get(at)) else {
        return ApiError::not_found().into_response();
    };
    let kind = if path.ends_with(".svg") { "image/svg+xml" } else { "text/html; charset=utf-8" };
    ([(CONTENT_TYPE, kind)], *text).into_response()
}
