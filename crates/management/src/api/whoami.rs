//! `/api/whoami`: who has logged in.

use serde_json::json;

use crate::http::access::Management;
use crate::http::answer::Json;

pub(crate) async fn show(Management(caller): Management) -> Json {
    Json::ok(json!({"name": caller.name, "tags": caller.tags, "is_internal_user": true}))
}
