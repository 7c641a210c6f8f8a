//! `/api/definitions`: everything that is declared, out and in. What is taken in is made as a whole or
//! not at all; `?dry_run=true` lists the changes and makes none.

use axum::body::Bytes;
use axum::extract::{RawQuery, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Map, Value, json};
use server::json::import_preview::{import_items_to_json, preview_to_json};
use server::requests::{ImportError, ImportRequest};

use crate::api::vhosts::down_vhosts;
use crate::http::access::Administrator;
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{Body, Name, SharedNode};
use crate::http::multipart;
use crate::http::routes::Routes;
use crate::http::scope::Scope;
use crate::json::bounded;
use crate::json::taken::taken;
use crate::limits::{DEFINITIONS_DEPTH_MAX, definitions_values_max};

/// The paths.
pub(super) fn routes() -> Routes {
    Routes::new()
        .route("/api/definitions", (Scope::Definitions, Scope::Metadata), get(export).post(import))
        .route(
            "/api/all-configuration",
            (Scope::Definitions, Scope::Metadata),
            get(export).post(import),
        )
        .route(
            "/api/definitions/{vhost}",
            Scope::Vhost("vhost"),
            get(export_vhost).post(import_vhost),
        )
}

async fn export(
    State(node): State<SharedNode>,
    Administrator(caller): Administrator,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let (download, only) = (download(query.as_deref())?, caller.only_vhosts.as_deref());
    let is_exported = |name: &String| only.is_none_or(|only| only.contains(name));
    if let Some(down) = down_vhosts(&node).find(is_exported) {
        let reason = format!("vhost '{down}' is down: export the other vhosts one by one");
        return Err(ApiError::unavailable(reason));
    }
    let _turn = node.http_budget().long_answer().await;
    Ok(file(node.definitions(only), download))
}

/// The families whose items are in a vhost.
const OF_VHOSTS: [&str; 5] = ["parameters", "policies", "exchanges", "queues", "bindings"];

/// Puts together what nodes have exported, each for other vhosts. Users, vhosts and what else all nodes have is that of
/// the first.
pub(crate) fn merge(mut first: Value, mut others: Vec<Value>) -> Value {
    for family in OF_VHOSTS {
        let Some(items) = first.get_mut(family).and_then(Value::as_array_mut) else { continue };
        for other in &mut others {
            items.extend(taken(other, family).unwrap_or_default());
        }
        // The sort is stable: items of one vhost keep their order.
        items.sort_by_cached_key(|item| {
            item.get("vhost").and_then(Value::as_str).map(str::to_owned)
        });
    }
    first
}

async fn export_vhost(
    State(node): State<SharedNode>,
    Administrator(_): Administrator,
    Name(vhost): Name,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let _turn = node.http_budget().long_answer().await;
    let definitions = node.definitions_of(&vhost).ok_or_else(ApiError::no_such_vhost)?;
    Ok(file(definitions, download(query.as_deref())?))
}

/// The name of the file that a browser is to make of the answer.
pub(crate) fn download(query: Option<&str>) -> Result<Option<String>, ApiError> {
    let query = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let Some((_, name)) = query.into_iter().find(|(key, _)| key == "download") else {
        return Ok(None);
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(ApiError::bad_request("'download' is no plain name of a file"));
    }
    Ok(Some(name.into_owned()))
}

pub(crate) fn file(definitions: Value, name: Option<String>) -> Response {
    let answer = Json::ok(definitions);
    match name {
        None => answer.into_response(),
        Some(name) => {
            let disposition = format!("attachment; filename={name}");
            ([(CONTENT_DISPOSITION, disposition)], answer).into_response()
        }
    }
}

async fn import(
    State(node): State<SharedNode>,
    Administrator(caller): Administrator,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    Body(body): Body,
) -> Result<Response, ApiError> {
    let request = request(None, object(&headers, &body)?, query.as_deref(), &caller.name)?;
    take(node, request, flag(query.as_deref(), "dry_run")?).await
}

async fn import_vhost(
    State(node): State<SharedNode>,
    Administrator(caller): Administrator,
    Name(vhost): Name,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    Body(body): Body,
) -> Result<Response, ApiError> {
    if !node.vhost_names().contains(&vhost) {
        return Err(ApiError::no_such_vhost());
    }
    let is_dry = flag(query.as_deref(), "dry_run")?;
    let request = request(Some(vhost), object(&headers, &body)?, query.as_deref(), &caller.name)?;
    take(node, request, is_dry).await
}

fn request(
    vhost: Option<String>,
    definitions: Map<String, Value>,
    query: Option<&str>,
    user: &str,
) -> Result<ImportRequest, ApiError> {
    let skips_unsupported = flag(query, "skip_unsupported")?;
    Ok(ImportRequest { vhost, definitions, importer: Some(user.to_owned()), skips_unsupported })
}

/// A parameter that is true or false, or missing, which is false. RabbitMQ has none for imports.
fn flag(query: Option<&str>, name: &str) -> Result<bool, ApiError> {
    let query = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    match query.into_iter().find(|(key, _)| key == name) {
        None => Ok(false),
        Some((_, value)) if value == "true" => Ok(true),
        Some((_, value)) if value == "false" => Ok(false),
        Some(_) => Err(ApiError::bad_request(format!("{name} should be true or false"))),
    }
}

// COMPAT: answer to an import: what is left out is listed with the status 200, where RabbitMQ says 204 or refuses.
async fn take(
    node: SharedNode,
    request: ImportRequest,
    is_dry: bool,
) -> Result<Response, ApiError> {
    if is_dry {
        return match node.preview_import(request).await {
            Ok(preview) => Ok(Json::ok(preview_to_json(&preview)).into_response()),
            Err(error) => refused(error),
        };
    }
    match node.import(request).await {
        Ok(left_out) if left_out.total == 0 => Ok(StatusCode::NO_CONTENT.into_response()),
        Ok(left_out) => {
            let (list, total) = (import_items_to_json(&left_out), left_out.total);
            Ok(Json::ok(json!({"left_out": list, "left_out_total": total})).into_response())
        }
        Err(error) => refused(error),
    }
}

/// The answer to definitions that are not imported, with all problems beside RabbitMQ's words.
fn refused(error: ImportError) -> Result<Response, ApiError> {
    match error {
        ImportError::Definitions { reason, problems } => {
            let (list, total) = (import_items_to_json(&problems), problems.total);
            let answer = json!({
                "error": "bad_request", "reason": reason, "problems": list, "problems_total": total,
            });
            Ok(Json(StatusCode::BAD_REQUEST, answer).into_response())
        }
        ImportError::Node(problem) => Err(ApiError::internal(problem)),
    }
}

/// The definitions in a body, or in the file of a form.
fn object(headers: &HeaderMap, body: &Bytes) -> Result<Map<String, Value>, ApiError> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let bytes = if multipart::is_form(kind) {
        let missing = || ApiError::bad_request("the form has no part that is named file");
        multipart::part(kind, body, "file").ok_or_else(missing)?
    } else {
        body
    };
    match bounded::read(bytes, definitions_values_max(bytes.len()), DEFINITIONS_DEPTH_MAX) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(ApiError::bad_request("failed_to_parse_json")),
        Err(error) => Err(error.refused("failed_to_parse_json")),
    }
}
