//! `/api/nodes/{name}/vm-memory-high-watermark` and `/api/nodes/{name}/disk-free-limit`: the limits at
//! which publishers are blocked, for as long as the node runs. RabbitMQ has this in its command line
//! tool only.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::put;
use serde_json::Value;
use server::limits::JSON_DEPTH_MAX;
use server::requests::DiskFreeLimit;
use server::snapshot::node::MemoryWatermark;

use crate::http::access::Administrator;
use crate::http::answer::ApiError;
use crate::http::extract::{Body, Name, SharedNode};
use crate::http::routes::Routes;
use crate::http::scope::Scope;
use crate::json::bounded;
use crate::limits::BODY_VALUES_MAX;

/// The paths.
pub(super) fn routes() -> Routes {
    Routes::new()
        .route(
            "/api/nodes/{name}/vm-memory-high-watermark",
            Scope::Node("name"),
            put(set_memory_watermark),
        )
        .route("/api/nodes/{name}/disk-free-limit", Scope::Node("name"), put(set_disk_free_limit))
}

async fn set_memory_watermark(
    State(node): State<SharedNode>,
    Administrator(caller): Administrator,
    Name(name): Name,
    Body(body): Body,
) -> Result<StatusCode, ApiError> {
    check_name(&node, &name)?;
    let watermark = memory_watermark(&body).map_err(ApiError::bad_request)?;
    node.set_memory_watermark(watermark, &caller.name);
    Ok(StatusCode::NO_CONTENT)
}

async fn set_disk_free_limit(
    State(node): State<SharedNode>,
    Administrator(caller): Administrator,
    Name(name): Name,
    Body(body): Body,
) -> Result<StatusCode, ApiError> {
    check_name(&node, &name)?;
    let limit = disk_free_limit(&body).map_err(ApiError::bad_request)?;
    node.set_disk_free_limit(limit, &caller.name);
    Ok(StatusCode::NO_CONTENT)
}

fn check_name(node: &SharedNode, name: &str) -> Result<(), ApiError> {
    if name == node.snapshot().name { Ok(()) } else { Err(ApiError::not_found()) }
}

fn memory_watermark(body: &[u8]) -> Result<MemoryWatermark, String> {
    match only_field(body)?.as_ref().map(|(name, value)| (name.as_str(), value)) {
        Some(("relative", value)) => {
            let share = value.as_f64().filter(|share| (0.0..=1.0).contains(share));
            share
                .map(MemoryWatermark::Relative)
                .ok_or_else(|| "relative must be a number from 0 to 1".to_owned())
        }
        Some(("absolute", value)) => bytes(value).map(MemoryWatermark::Absolute),
        _ => Err("the body must be {\"relative\": SHARE} or {\"absolute\": BYTES}".to_owned()),
    }
}

fn disk_free_limit(body: &[u8]) -> Result<DiskFreeLimit, String> {
    match only_field(body)?.as_ref().map(|(name, value)| (name.as_str(), value)) {
        Some(("mem_relative", value)) => {
            let multiple = value.as_f64().filter(|multiple| *multiple >= 0.0);
            let multiple = multiple.map(DiskFreeLimit::Relative);
            multiple.ok_or_else(|| "mem_relative must be a number from 0 on".to_owned())
        }
        Some(("absolute", value)) => bytes(value).map(DiskFreeLimit::Absolute),
        _ => {
            Err("the body must be {\"absolute\": BYTES} or {\"mem_relative\": MULTIPLE}".to_owned())
        }
    }
}

/// The one field of the object in a body, if it has only one.
fn only_field(body: &[u8]) -> Result<Option<(String, Value)>, String> {
    match bounded::read(body, BODY_VALUES_MAX, JSON_DEPTH_MAX) {
        Ok(Value::Object(fields)) if fields.len() == 1 => Ok(fields.into_iter().next()),
        Ok(_) => Ok(None),
        Err(error) => Err(error.reason("not_json")),
    }
}

fn bytes(value: &Value) -> Result<u64, String> {
    value.as_u64().ok_or_else(|| "absolute must be a number of bytes".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarm_limit_is_absolute_or_relative() {
        let memory = |body: &str| memory_watermark(body.as_bytes());
        assert_eq!(memory(r#"{"relative": 0.4}"#), Ok(MemoryWatermark::Relative(0.4)));
        assert_eq!(memory(r#"{"relative": 1}"#), Ok(MemoryWatermark::Relative(1.0)));
        assert_eq!(memory(r#"{"absolute": 1000}"#), Ok(MemoryWatermark::Absolute(1000)));
        let disk = |body: &str| disk_free_limit(body.as_bytes());
        assert_eq!(disk(r#"{"absolute": 0}"#), Ok(DiskFreeLimit::Absolute(0)));
        assert_eq!(disk(r#"{"mem_relative": 1.5}"#), Ok(DiskFreeLimit::Relative(1.5)));
    }

    #[test]
    fn alarm_limit_refuses_other_values() {
        for body in [
            "",
            "[]",
            "{}",
            "null",
            r#"{"relative": 1.1}"#,
            r#"{"relative": -0.1}"#,
            r#"{"relative": "0.4"}"#,
            r#"{"absolute": -1}"#,
            r#"{"absolute": 1.5}"#,
            r#"{"absolute": "1GB"}"#,
            r#"{"mem_relative": 1}"#,
            r#"{"relative": 0.4, "absolute": 1}"#,
        ] {
            assert!(memory_watermark(body.as_bytes()).is_err(), "{body}");
        }
        for body in [r#"{"relative": 1}"#, r#"{"mem_relative": -1}"#, r#"{"absolute": true}"#] {
            assert!(disk_free_limit(body.as_bytes()).is_err(), "{body}");
        }
    }
}
