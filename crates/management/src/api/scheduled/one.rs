//! `/api/scheduled/{vhost}/{kind}/{name}/{id}`: the messages with one schedule id, or one message by its handle.

use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::routing::{get, post};
use broker::{ScheduleId, ScheduleOperation, ScheduleSelector, ScheduleTarget};
use serde_json::{Value, json};
use server::requests::{Caller, ScheduleChanged};

use super::change::NewTime;
use super::item::to_json;
use super::no_such_message;
use crate::http::access::{Management, check_can_enter};
use crate::http::answer::{ApiError, Json};
use crate::http::body::Object;
use crate::http::extract::SharedNode;
use crate::http::routes::Routes;
use crate::http::scope::Scope;

pub(super) fn routes() -> Routes {
    Routes::new()
        .route(
            "/api/scheduled/{vhost}/{kind}/{name}/{id}",
            Scope::Vhost("vhost"),
            get(show).put(reschedule).delete(cancel),
        )
        .route(
            "/api/scheduled/{vhost}/{kind}/{name}/{id}/deliver",
            Scope::Vhost("vhost"),
            post(deliver),
        )
}

async fn show(
    State(node): State<SharedNode>,
    Management(caller): Management,
    selected: Selected,
) -> Result<Json, ApiError> {
    check_can_enter(&caller, &selected.vhost)?;
    let (target, selector) = (selected.target.clone(), selected.selector.clone());
    let vhost = &selected.vhost;
    let (messages, now) = node.find_scheduled(&caller, vhost, target, selector).await?;
    if messages.is_empty() {
        return Err(selected.missing());
    }
    Ok(Json::ok(messages.iter().map(|message| to_json(vhost, message, now)).collect::<Value>()))
}

async fn cancel(
    State(node): State<SharedNode>,
    Management(caller): Management,
    selected: Selected,
) -> Result<Json, ApiError> {
    let done = selected.change(&node, &caller, |_| ScheduleOperation::Cancel).await?;
    Ok(Json::ok(json!({"cancelled": done.messages})))
}

async fn reschedule(
    State(node): State<SharedNode>,
    Management(caller): Management,
    selected: Selected,
    body: Object,
) -> Result<Json, ApiError> {
    let time = NewTime::parse(&body)?;
    let done = selected.change(&node, &caller, move |now| time.operation(now)).await?;
    let delivery_time_ms = time.wall_ms(done.now).max(done.now.wall_ms());
    Ok(Json::ok(json!({"rescheduled": done.messages, "delivery_time": delivery_time_ms})))
}

async fn deliver(
    State(node): State<SharedNode>,
    Management(caller): Management,
    selected: Selected,
) -> Result<Json, ApiError> {
    let done = selected.change(&node, &caller, |_| ScheduleOperation::Deliver).await?;
    Ok(Json::ok(json!({"delivered": done.messages})))
}

/// Scheduled messages as a path names them.
#[derive(Debug)]
struct Selected {
    vhost: String,
    target: ScheduleTarget,
    selector: ScheduleSelector,
}

impl<S: Send + Sync> FromRequestParts<S> for Selected {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::<(String, String, String, String)>::from_request_parts(parts, state).await;
        let Path((vhost, kind, name, id)) = path.map_err(|_| ApiError::not_found())?;
        let target = ScheduleTarget::of(&kind, &name).ok_or_else(ApiError::not_found)?;
        let selector = selector(parts.uri.query().unwrap_or_default(), &id)?;
        Ok(Self { vhost, target, selector })
    }
}

impl Selected {
    /// Changes the messages, once at least one is found.
    async fn change(
        &self,
        node: &SharedNode,
        caller: &Caller,
        operation: impl FnOnce(broker::time::Now) -> ScheduleOperation,
    ) -> Result<ScheduleChanged, ApiError> {
        check_can_enter(caller, &self.vhost)?;
        let (target, selector) = (self.target.clone(), self.selector.clone());
        let done = node.change_scheduled(caller, &self.vhost, target, selector, operation).await?;
        if done.messages == 0 { Err(self.missing()) } else { Ok(done) }
    }

    fn missing(&self) -> ApiError {
        let Self { vhost, target, selector } = self;
        let which = match selector {
            ScheduleSelector::Id(id) => format!("'{id}'"),
            ScheduleSelector::Handle(handle) => format!("with handle {handle}"),
        };
        let place = format!("{} '{}' in vhost '{vhost}'", target.kind(), target.name());
        no_such_message(&format!("{which} in {place}"))
    }
}

/// The meaning of the last name in a path: a schedule id, or a handle with `by=handle`.
fn selector(query: &str, id: &str) -> Result<ScheduleSelector, ApiError> {
    let mut is_handle = false;
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match (&*name, &*value) {
            ("by", "id") => is_handle = false,
            ("by", "handle") => is_handle = true,
            ("by", _) => return Err(ApiError::bad_request("by must be id or handle")),
            (name, _) => {
                return Err(ApiError::bad_request(format!("{name} is not known; known is by")));
            }
        }
    }
    match is_handle {
        true => {
            let handle = id.parse().map(ScheduleSelector::Handle);
            handle.map_err(|_| ApiError::bad_request("the handle must be a whole number"))
        }
        false => {
            let id = ScheduleId::new(id).map(ScheduleSelector::Id);
            id.ok_or_else(|| ApiError::bad_request("the id must have 1 to 255 bytes"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_ends_with_an_id_or_a_handle() {
        let id = ScheduleSelector::Id(ScheduleId::new("7").unwrap());
        assert_eq!(selector("", "7"), Ok(id.clone()));
        assert_eq!(selector("by=id", "7"), Ok(id));
        assert_eq!(selector("by=handle", "7"), Ok(ScheduleSelector::Handle(7)));
        for (query, id, reason) in [
            ("by=number", "7", "by must be id or handle"),
            ("buy=handle", "7", "buy is not known; known is by"),
            ("by=handle", "x", "the handle must be a whole number"),
            ("by=handle", "-1", "the handle must be a whole number"),
            ("", &"x".repeat(256), "the id must have 1 to 255 bytes"),
        ] {
            assert_eq!(selector(query, id).unwrap_err().reason(), reason, "{query} {id}");
        }
    }
}
