//! `GET /api/scheduled`, `GET` and `DELETE /api/scheduled/{vhost}`: the scheduled messages by delivery time, and the
//! cancellation of all that match.

use axum::extract::{RawQuery, State};
use axum::routing::get;
use broker::ScheduledMessage;
use broker::time::Now;
use serde_json::{Value, json};
use server::requests::{Caller, ScheduleQuery};

use super::item::to_json;
use super::query::{Cursor, Parameters};
use super::{is_hidden, visible_vhosts};
use crate::http::access::{Management, check_can_enter};
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{Name, SharedNode};
use crate::http::routes::Routes;
use crate::http::scope::Scope;
use crate::limits::{SCHEDULED_COUNT_DEFAULT, SCHEDULED_COUNT_MAX};

pub(super) fn routes() -> Routes {
    Routes::new().route("/api/scheduled", Scope::Scheduled, get(list)).route(
        "/api/scheduled/{name}",
        Scope::Vhost("name"),
        get(list_of_vhost).delete(cancel),
    )
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
    let is_part = caller.only_vhosts.is_some();
    Ok(Json::ok(if is_part { page.to_part() } else { page.to_json() }))
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

impl Shown {
    fn cursor(&self) -> Cursor {
        Cursor { vhost: self.vhost.clone(), place: self.message.behind }
    }
}

impl Page {
    /// Adds the messages of a vhost, which must be behind the others in order.
    async fn add(
        &mut self,
        query: &ListQuery,
        node: &SharedNode,
        caller: &Caller,
        vhost: &str,
    ) -> Result<(), server::requests::ScheduleError> {
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
        let cursor = last.map(|shown| shown.cursor().to_string());
        let messages = self.messages.iter();
        let messages =
            messages.map(|shown| to_json(&shown.vhost, &shown.message, shown.now)).collect();
        json!({"messages": Value::Array(messages), "cursor": cursor})
    }

    /// The page as a part of one of several nodes: with the place of each message.
    fn to_part(&self) -> Value {
        let mut json = self.to_json();
        let messages = json.get_mut("messages").and_then(Value::as_array_mut);
        for (message, shown) in messages.into_iter().flatten().zip(&self.messages) {
            message[PLACE] = json!(shown.cursor().to_string());
        }
        json
    }
}

/// The field of a message in a part.
const PLACE: &str = "place";

/// The number of messages that a query asks for.
pub(crate) fn limit(query: &str) -> Result<usize, ApiError> {
    Ok(ListQuery::parse(query)?.limit)
}

/// One page from those of all nodes, whose vhosts differ.
pub(crate) fn merge(pages: Vec<Value>, limit: usize) -> Value {
    let (mut messages, mut has_more) = (Vec::new(), false);
    for mut page in pages {
        has_more |= page.get("cursor").is_some_and(|cursor| !cursor.is_null());
        let Some(Value::Array(of_node)) = page.get_mut("messages").map(Value::take) else {
            continue;
        };
        for mut message in of_node {
            let place = message.as_object_mut().and_then(|message| message.remove(PLACE));
            let place = place.and_then(|place| place.as_str()?.parse::<Cursor>().ok());
            // Without a place, it is not of this build.
            let Some(place) = place else { continue };
            messages.push((place, message));
        }
    }
    // The sort is stable: messages of one vhost keep their order.
    messages.sort_by(|(a, _), (b, _)| {
        (a.place.ready_at(), &a.vhost).cmp(&(b.place.ready_at(), &b.vhost))
    });
    has_more |= messages.len() > limit;
    messages.truncate(limit);
    let cursor = messages.last().filter(|_| has_more).map(|(place, _)| place.to_string());
    let messages: Vec<Value> = messages.into_iter().map(|(_, message)| message).collect();
    json!({"messages": messages, "cursor": cursor})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(places: &[&str], cursor: Option<&str>) -> Value {
        let messages = places.iter().map(|place| json!({"id": place, "place": place}));
        json!({"messages": messages.collect::<Vec<Value>>(), "cursor": cursor})
    }

    #[test]
    fn pages_of_nodes_are_one() {
        let (a, b) = (page(&["5.1.1_61", "9.1.2_61"], None), page(&["5.1.7_62", "7.1.8_62"], None));
        let all = merge(vec![b.clone(), a.clone()], 10);
        let ids = |page: &Value| -> Vec<String> {
            let messages = page["messages"].as_array().unwrap().iter();
            messages.map(|message| message["id"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(ids(&all), ["5.1.1_61", "5.1.7_62", "7.1.8_62", "9.1.2_61"]);
        assert_eq!((&all["cursor"], all["messages"][0].get("place")), (&Value::Null, None));
        let first = merge(vec![a, b], 3);
        assert_eq!((ids(&first).len(), &first["cursor"]), (3, &json!("7.1.8_62")));
        let cut = merge(vec![page(&["5.1.1_61"], Some("5.1.1_61")), page(&[], None)], 1);
        assert_eq!(cut["cursor"], "5.1.1_61");
    }
}
