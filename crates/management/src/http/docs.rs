//! The documentation: pages rendered from Markdown when the program is built, for readers without a network.
//!
//! They need no login, because they contain only what the source contains.

use axum::Router;
use axum::extract::Path;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::http::answer::ApiError;

/// Path and content of every page and drawing, ordered by path.
const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/docs.rs"));

/// The paths, equal for a running and a stopped node.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/api/index.html", get(async || answer("api/index.html"))).route(
        "/docs/{*name}",
        get(async |Path(name): Path<String>| answer(&format!("docs/{name}"))),
    )
}

fn answer(name: &str) -> Response {
    let found = PAGES.binary_search_by(|(path, _)| (*path).cmp(name));
    let Some((path, text)) = found.ok().and_then(|at| PAGES.get(at)) else {
        return ApiError::not_found().into_response();
    };
    let kind = if path.ends_with(".svg") { "image/svg+xml" } else { "text/html; charset=utf-8" };
    ([(CONTENT_TYPE, kind)], *text).into_response()
}
