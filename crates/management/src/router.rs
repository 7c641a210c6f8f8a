//! Routers: the whole API with metrics and the web page, or metrics alone.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use server::Node;
use server::http_budget::{HttpBudget, Pool};
use server::limits::BODY_BYTES_MAX;

use crate::http::{access, allowance, answer, docs, forward, middleware, web};
use crate::metrics::routes::Audience;
use crate::{api, metrics};

/// Answers HTTP requests about `node`. Must be served with the `SocketAddr` of each client.
pub fn router(node: Arc<Node>) -> Router {
    let budget = Arc::clone(node.http_budget());
    let api = api::routes()
        .forwarded(&node)
        .route_layer(from_fn_with_state(Arc::clone(&node), access::guard));
    let time = from_fn_with_state(Arc::clone(&node), middleware::tell_time);
    let routes = Router::new()
        .merge(metrics::routes::routes(&node, Audience::Monitors))
        .merge(api.merge(api::open_routes()).route_layer(time))
        .merge(web::routes())
        .merge(docs::routes())
        // Outside the guard: as in RabbitMQ, neither answer needs a login.
        .method_not_allowed_fallback(answer::wrong_method)
        .fallback(answer::no_such_path)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(node);
    outside(routes, budget, Pool::Answers)
}

/// Answers requests that other nodes of the cluster pass on. Whoever is served with it may act as any user.
pub(crate) fn peer_router(node: Arc<Node>) -> Router {
    router(node).layer(from_fn(forward::receive))
}

/// Answers requests for metrics only, on a listener for scrapers.
pub(crate) fn metrics_router(node: Arc<Node>) -> Router {
    let budget = Arc::clone(node.http_budget());
    let routes = metrics::routes::routes(&node, Audience::Everybody)
        .fallback(answer::no_such_path)
        .with_state(node);
    outside(routes, budget, Pool::Metrics)
}

/// Checks and bounds that are around a router, not on its routes: the middleware may change the path.
fn outside(routes: Router, budget: Arc<HttpBudget>, answers: Pool) -> Router {
    let body_bytes_max = budget.body_bytes_max(false);
    Router::new()
        .fallback_service(routes)
        .layer(from_fn_with_state((budget, answers), allowance::bound))
        .layer(from_fn_with_state(body_bytes_max, middleware::pass))
}
