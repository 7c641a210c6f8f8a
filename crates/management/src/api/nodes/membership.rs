//! `DELETE /api/nodes/{name}`: a node is taken out of the cluster. Leveret's own.

use axum::extract::State;
use axum::http::StatusCode;
use server::requests::ForgetError;

use crate::http::access::Administrator;
use crate::http::answer::ApiError;
use crate::http::extract::{Name, SharedNode};

/// Forgets a node.
pub(super) async fn forget(
    State(node): State<SharedNode>,
    _: Administrator,
    Name(name): Name,
) -> Result<StatusCode, ApiError> {
    match node.forget_node(&name).await {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(ForgetError::NoSuchNode) => Err(ApiError::not_found()),
        Err(ForgetError::Change(error)) => Err(error.into()),
        Err(error @ (ForgetError::NoCluster | ForgetError::IsUp | ForgetError::NeededBy(_))) => {
            Err(ApiError::new(StatusCode::CONFLICT, "conflict", error.to_string()))
        }
    }
}
