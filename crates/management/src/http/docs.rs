//! The documentation: pages rendered from Markdown when the program is built, for readers without a network.
//!
//! They need no login, because they contain only what the source contains.

use axum::Router;
use axum::extract::{OriginalUri, Path};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::http::answer::ApiError;

/// Path and content of every page and drawing, ordered by path.
const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/docs.rs"));

/// The paths, equal for a running and a stopped node.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/api/index.html", get(async || answer("api/index.html")))
        // The middleware removes the slash of `/api/`.
        .route("/api", get(to_api))
        .route(
            "/docs/{*name}",
            get(async |Path(name): Path<String>| answer(&format!("docs/{name}"))),
        )
}

/// Redirects to the documentation of the API, as RabbitMQ does. The address is relative to the one that the client
/// sent, so that it fits below a prefix of the server or of a proxy.
async fn to_api(OriginalUri(uri): OriginalUri) -> impl IntoResponse {
    let location = if uri.path().ends_with('/') { "index.html" } else { "api/index.html" };
    (StatusCode::MOVED_PERMANENTLY, [(LOCATION, location)])
}

fn answer(name: &str) -> Response {
    let found = PAGES.binary_search_by(|(path, _)| (*path).cmp(name));
    let Some((path, text)) = found.ok().and_then(|at| PAGES.get(at)) else {
        return ApiError::not_found().into_response();
    };
    let kind = if path.ends_with(".svg") { "image/svg+xml" } else { "text/html; charset=utf-8" };
    ([(CONTENT_TYPE, kind)], *text).into_response()
}
