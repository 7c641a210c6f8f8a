//! `management.path_prefix`: the management API below a path of its own, for proxies that serve other
//! things beside it. Metrics stay where they are.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::Uri;
use axum::middleware::{Next, from_fn};

/// Serves what `router` has at `/api` at the prefix and `/api`.
pub(crate) fn below(prefix: Option<String>, router: Router) -> Router {
    let Some(prefix) = prefix else { return router };
    let prefix: Arc<str> = prefix.into();
    let strip = move |mut request: Request, next: Next| {
        let uri = without(&prefix, request.uri());
        async move {
            *request.uri_mut() = uri;
            next.run(request).await
        }
    };
    // Around the routes, not on them: what comes in changes its path.
    Router::new().fallback_service(router).layer(from_fn(strip))
}

/// The address without the prefix; what does not begin with it is nowhere, unless it is for metrics.
fn without(prefix: &str, uri: &Uri) -> Uri {
    let path = uri.path();
    let rest = match path.strip_prefix(prefix) {
        Some(rest) if rest.starts_with('/') => rest,
        _ if path == "/metrics" || path.starts_with("/metrics/") => path,
        _ => "/",
    };
    let rest = uri.query().map_or_else(|| rest.to_owned(), |query| format!("{rest}?{query}"));
    rest.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_is_below_the_prefix_and_nowhere_else() {
        let without = |uri: &'static str| without("/rabbit", &Uri::from_static(uri)).to_string();
        assert_eq!(without("/rabbit/api/queues/%2F?page=1"), "/api/queues/%2F?page=1");
        assert_eq!(without("/metrics/per-object"), "/metrics/per-object");
        assert_eq!(without("/api/overview"), "/");
        assert_eq!(without("/rabbits/api/overview"), "/");
        assert_eq!(without("/rabbit/"), "/");
    }
}
