//! The leader of a vhost, as another node names it.

use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use serde_json::Value;

use crate::http::forward::{json_of, request_of_node, segment};

/// The request with which a node asks another one which node leads a vhost, as far as that one knows.
pub fn leader_request(vhost: &str) -> Request {
    let path = format!("/api/vhosts/{}?columns=leader&disable_stats=true", segment(vhost));
    request_of_node(Method::GET, &path, Vec::new())
}

/// True if the answer to [`leader_request`] names this leader, or comes from a node that has no such vhost.
pub async fn names_leader(answer: Response, leader: &str) -> bool {
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
