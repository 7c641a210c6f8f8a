//! `GET /api/scheduled`, `GET` and `DELETE /api/scheduled/{vhost}`: the scheduled messages by delivery time, and the
//! cancellation of all that match.

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::routing::get;
use broker::ScheduledMessage;
use broker::time::Now;
use serde_json::{Value, json};

use super::item::to_json;
use super::query::{Cursor, Parameters};
use super::{is_hidden, visible_vhosts};
use crate::http::access::{Management, check_can_enter};
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{Name, SharedNode};
use crate::limits::{SCHEDULED_COUNT_DEFAULT, SCHEDULED_COUNT_MAX};
use crate::node::{Caller, ScheduleQuery};

pub(super) fn routes() -> Router<SharedNode> {
    Router::new()
        .route("/api/scheduled", get(list))
        .route("/api/scheduled/{name}", get(list_of_vhost).delete(cancel))
}

async fn list(
    State(node): State<SharedNode>,
    Management(caller): Management,
    RawQuery(query): RawQuery,
) -> Result<Json, ApiError> {
    let query = ListQuery::parse(&query.unwrap_or_default())?;
    let mut page = Page::default();
    for vhost in visible_vhosts(&node, &caller) {
        match page.add(&query, &node, &caller, &vhost).await {
            Err(error) if !is_hidden(&error) => return Err(error.into()),
            _ => {}
        }
    }
    Ok(Json::ok(page.to_json()))
}

async fn list_of_vhost(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(vhost): Name,
    RawQuery(query): RawQuery,
) -> Result<Json, ApiError> {
    check_can_enter(&caller, &vhost)?;
    let query = ListQuery::parse(&query.unwrap_or_default())?;
    let mut page = Page::default();
    page.add(&query, &node, &caller, &vhost).await?;
    Ok(Json::ok(page.to_json()))
}

/// Cancels all messages that match, and answers their number.
async fn cancel(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(vhost): Name,
    RawQuery(query): RawQuery,
) -> Result<Json, ApiError> {
    check_can_enter(&caller, &vhost)?;
    let query = Parameters::parse(&query.unwrap_or_default(), &[])?.filters()?;
    if query == ScheduleQuery::default() {
        let reason = "one of target, id, after and before is needed; after=0 selects all messages";
        return Err(ApiError::bad_request(reason));
    }
    let done = node.cancel_scheduled(&caller, &vhost, query).await?;
    Ok(Json::ok(json!({
        "cancelled": done.cancelled,
        "refused": done.refused,
        "complete": done.is_complete,
    })))
}

/// The query of a list.
#[derive(Debug)]
struct ListQuery {
    filters: ScheduleQuery,
    limit: usize,
    behind: Option<Cursor>,
}

impl ListQuery {
    fn parse(query: &str) -> Result<Self, ApiError> {
        let parameters = Parameters::parse(query, &["limit", "cursor"])?;
        Ok(Self {
            filters: parameters.filters()?,
            limit: parameters.count("limit", SCHEDULED_COUNT_DEFAULT, SCHEDULED_COUNT_MAX)?,
            behind: parameters.cursor()?,
        })
    }
}

/// The first messages of some vhosts.
#[derive(Default)]
struct Page {
    /// By delivery time, then in the order of the vhosts.
    messages: Vec<Shown>,
    /// True if more messages follow.
    has_more: bool,
}

/// A message with its vhost and the time of the read.
struct Shown {
    vhost: String,
    message: ScheduledMessage,
    now: Now,
}

impl Page {
    /// Adds the messages of a vhost, which must be behind the others in order.
    async fn add(
        &mut self,
        query: &ListQuery,
        node: &SharedNode,
        caller: &Caller,
        vhost: &str,
    ) -> Result<(), crate::node::ScheduleError> {
        let behind = query.behind.as_ref().map(|cursor| cursor.within(vhost));
        let batch =
            node.scheduled(caller, vhost, query.filters.clone(), behind, query.limit).await?;
        let shown = |message| Shown { vhost: vhost.to_owned(), message, now: batch.now };
        self.messages.extend(batch.page.messages.into_iter().map(shown));
        // The sort is stable: messages of one vhost keep their order.
        self.messages.sort_by_key(|shown| shown.message.ready_at);
        self.has_more |= batch.page.next.is_some() || self.messages.len() > query.limit;
        self.messages.truncate(query.limit);
        Ok(())
    }

    fn to_json(&self) -> Value {
        let last = self.messages.last().filter(|_| self.has_more);
        let cursor = last.map(|Shown { vhost, message, .. }| {
            Cursor { vhost: vhost.clone(), place: message.behind }.to_string()
        });
        let messages = self.messages.iter();
        let messages =
            messages.map(|shown| to_json(&shown.vhost, &shown.message, shown.now)).collect();
        json!({"messages": Value::Array(messages), "cursor": cursor})
    }
}
