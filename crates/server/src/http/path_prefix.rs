//! `management.path_prefix`: serves the web page and the management API below a path of their own, for
//! proxies that also serve other things. Metrics keep their paths.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::Uri;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Redirect};

/// A path that no route has.
const NOWHERE: &str = "/nowhere";

/// Serves the routes of `router` below `/api` at the prefix and `/api`, and the page at the prefix with a
/// slash.
pub(crate) fn below(prefix: Option<String>, router: Router) -> Router {
    let Some(prefix) = prefix else { return router };
    let prefix: Arc<str> = prefix.into();
    let strip = move |mut request: Request, next: Next| {
        let prefix = Arc::clone(&prefix);
        async move {
            // The page uses relative addresses, so its own address must end with a slash.
            if request.uri().path() == &*prefix {
                return Redirect::permanent(&format!("{prefix}/")).into_response();
            }
            *request.uri_mut() = without(&prefix, request.uri());
            next.run(request).await
        }
    };
    // The layer wraps the routes as a service, because it must change the path before routing.
    Router::new().fallback_service(router).layer(from_fn(strip))
}

/// The address without the prefix. An address outside the prefix is mapped to a path without a route, except
/// for metrics.
fn without(prefix: &str, uri: &Uri) -> Uri {
    let path = uri.path();
    let rest = match path.strip_prefix(prefix) {
        Some(rest) if rest.starts_with('/') => rest,
        _ if path == "/metrics" || path.starts_with("/metrics/") => path,
        _ => NOWHERE,
    };
    let rest = uri.query().map_or_else(|| rest.to_owned(), |query| format!("{rest}?{query}"));
    rest.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_prefix_covers_every_route() {
        let without = |uri: &'static str| without("/rabbit", &Uri::from_static(uri)).to_string();
        assert_eq!(without("/rabbit/api/queues/%2F?page=1"), "/api/queues/%2F?page=1");
        assert_eq!(without("/metrics/per-object"), "/metrics/per-object");
        assert_eq!(without("/rabbit/"), "/");
        assert_eq!(without("/api/overview"), NOWHERE);
        assert_eq!(without("/rabbits/api/overview"), NOWHERE);
        assert_eq!(without("/"), NOWHERE);
        assert_eq!(without("/api"), NOWHERE);
        assert_eq!(without("/rabbit/api"), "/api");
    }
}
