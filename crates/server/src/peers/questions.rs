//! Questions about a vhost that a node asks another one: who leads it, and for a barrier.

use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use serde_json::Value;

use crate::peers::request::{json_of, request_of_node, segment};

/// The request with which a node asks another one which node leads a vhost, as far as that one knows.
pub(crate) fn leader_request(vhost: &str) -> Request {
    let path = format!("/api/vhosts/{}?columns=leader&disable_stats=true", segment(vhost));
    request_of_node(Method::GET, &path, Vec::new())
}

/// True if the answer to [`leader_request`] names this leader, or comes from a node that has no such vhost.
pub(crate) async fn names_leader(answer: Response, leader: &str) -> bool {
    let status = answer.status();
    names(status, &json_of(answer).await.unwrap_or_default(), leader)
}

fn names(status: StatusCode, vhost: &Value, leader: &str) -> bool {
    match status {
        StatusCode::NOT_FOUND => true,
        StatusCode::OK => vhost["leader"] == *leader,
        _ => false,
    }
}

/// The request with which a node asks the leader of a vhost for a barrier.
pub(crate) fn barrier_request(vhost: &str) -> Request {
    let path = format!("/api/vhosts/{}/barrier", segment(vhost));
    request_of_node(Method::POST, &path, Vec::new())
}

/// The index in the answer to [`barrier_request`].
///
/// # Errors
/// The reason that the answer tells.
pub(crate) async fn barrier_index(answer: Response) -> Result<u64, String> {
    let body = json_of(answer).await.unwrap_or_default();
    body["index"].as_u64().ok_or_else(|| body["reason"].as_str().unwrap_or("no reason").to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answer_names_the_leader_or_has_no_vhost() {
        let vhost = |leader: Option<&str>| json!({"leader": leader});
        assert!(names(StatusCode::OK, &vhost(Some("b@h")), "b@h"));
        assert!(!names(StatusCode::OK, &vhost(Some("a@h")), "b@h"));
        assert!(!names(StatusCode::OK, &vhost(None), "b@h"));
        assert!(names(StatusCode::NOT_FOUND, &Value::Null, "b@h"));
        assert!(!names(StatusCode::SERVICE_UNAVAILABLE, &Value::Null, "b@h"));
    }
}
