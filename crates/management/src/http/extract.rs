//! Extractors: names in paths and bodies of requests.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use server::Node;

use crate::http::allowance::Allowance;
use crate::http::answer::ApiError;

/// The node, shared by all handlers.
pub(crate) type SharedNode = Arc<Node>;

/// The only name in a path, decoded. A name that is not UTF-8 matches no object.
#[derive(Debug)]
pub(crate) struct Name(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(name)) => Ok(Self(name)),
            Err(_) => Err(ApiError::not_found()),
        }
    }
}

/// The two names in a path, decoded: a vhost and an object in it.
#[derive(Debug)]
pub(crate) struct NameInVhost {
    pub(crate) vhost: String,
    pub(crate) name: String,
}

impl<S: Send + Sync> FromRequestParts<S> for NameInVhost {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Path::<(String, String)>::from_request_parts(parts, state).await {
            Ok(Path((vhost, name))) => Ok(Self { vhost, name }),
            Err(_) => Err(ApiError::not_found()),
        }
    }
}

/// Stands for the empty name of the default exchange in paths.
const DEFAULT_EXCHANGE: &str = "amq.default";

/// The name of the exchange that a path addresses.
pub(crate) fn exchange_name(in_path: &str) -> &str {
    if in_path == DEFAULT_EXCHANGE { "" } else { in_path }
}

/// The body of a request, unparsed.
#[derive(Debug)]
pub(crate) struct Body(pub(crate) Bytes);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        Allowance::of(&parts.extensions).read(&parts.headers, body).await.map(Self)
    }
}
