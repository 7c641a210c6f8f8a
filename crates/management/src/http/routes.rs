//! Routes of the API: each path with its handlers, and the nodes that can answer.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::MethodRouter;

use super::extract::SharedNode;
use super::forward::{Forwarding, forward};
use super::scope::Scopes;

/// Routes with their scopes. A row without a scope does not compile: what a node answers by itself, it answers because the row
/// says so.
#[derive(Default, Debug)]
pub(crate) struct Routes {
    router: Router<SharedNode>,
    scopes: HashMap<String, Scopes>,
}

impl Routes {
    /// No routes.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a path: the nodes that can answer, one scope for all requests or one for those that change nothing and one for
    /// those that do, and the handlers.
    ///
    /// # Panics
    /// If the path is there already, or a scope names a parameter that the path lacks.
    pub(crate) fn route(
        mut self,
        path: &str,
        scopes: impl Into<Scopes>,
        handlers: MethodRouter<SharedNode>,
    ) -> Self {
        let scopes = scopes.into();
        // A wrong name is found here, not by the first request.
        for is_change in [false, true] {
            let _ = scopes.of_request(is_change, path, path);
        }
        self.router = self.router.route(path, handlers);
        self.insert(path.to_owned(), scopes);
        self
    }

    /// Adds all routes of `other`.
    ///
    /// # Panics
    /// If a path is in both.
    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        other.scopes.into_iter().for_each(|(path, scopes)| self.insert(path, scopes));
        self
    }

    fn insert(&mut self, path: String, scopes: Scopes) {
        let before = self.scopes.insert(path, scopes);
        assert!(before.is_none(), "a path has one row");
    }

    /// The router, which passes each request on to the nodes of its scope.
    pub(crate) fn forwarded(self, node: &SharedNode) -> Router<SharedNode> {
        let forwarding = Forwarding { node: Arc::clone(node), scopes: Arc::new(self.scopes) };
        self.router.route_layer(from_fn_with_state(forwarding, forward))
    }
}
