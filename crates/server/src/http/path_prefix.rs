//! `management.path_prefix`: the web page and the management API below a path of their own, for proxies
//! that serve other things beside them. Metrics stay where they are.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::Uri;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Redirect};

/// Where nothing is.
const NOWHERE: &str = "/api";

/// Serves what `router` has at `/api` at the prefix and `/api`, and the page at the prefix and a slash.
pub(crate) fn below(prefix: Option<String>, router: Router) -> Router {
    let Some(prefix) = prefix else { return router };
    let prefix: Arc<str> = prefix.into();
    let strip = move |mut request: Request, next: Next| {
        let prefix = Arc::clone(&prefix);
        async move {
            // What the page asks for is below the address that it has itself.
            if request.uri().path() == &*prefix {
                return Redirect::permanent(&format!("{prefix}/")).into_response();
            }
            *request.uri_mut() = without(&prefix, request.uri());
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
        _ => NOWHERE,
    };
    let rest = uri.query().map_or_else(|| rest.to_owned(), |query| format!("{rest}?{query}"));
    rest.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_below_the_prefix_and_nowhere_else() {
        let without = |uri: &'static str| without("/rabbit", &Uri::from_static(uri)).to_string();
        assert_eq!(without("/rabbit/api/queues/%2F?page=1"), "/api/queues/%2F?page=1");
        assert_eq!(without("/metrics/per-object"), "/metrics/per-object");
        assert_eq!(without("/rabbit/"), "/");
        assert_eq!(without("/api/overview"), NOWHERE);
        assert_eq!(without("/rabbits/api/overview"), NOWHERE);
        assert_eq!(without("/"), NOWHERE);
    }
}
