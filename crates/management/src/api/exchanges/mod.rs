//! `/api/exchanges`: exchanges with their statistics; declare, delete.

pub(crate) mod publish;

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use broker::{Command, DeclareExchange};
use serde_json::{Value, json};
use server::history::Trend;
use server::json::table::table_to_json;
use server::snapshot::fields::{EXCHANGE, StatsKind, of_exchange};
use server::snapshot::topology::ExchangeSnapshot;

use crate::api::list_query::{DeleteConditions, List, Query};
use crate::api::rates::{self, trends};
use crate::api::row::{Part, Row};
use crate::api::user_channel::{UserVhost, short};
use crate::http::access::{Management, check_can_enter};
use crate::http::answer::{ApiError, Json, made};
use crate::http::extract::{Body, Name, NameInVhost, SharedNode, exchange_name};
use crate::http::fields::Fields;
use crate::http::routes::Routes;
use crate::http::scope::{NAME, Scope};
use crate::json::table::table_from_json;

/// The change of an exchange's numbers.
type ExchangeTrend = Trend<{ EXCHANGE.len() }>;

/// The paths.
pub(super) fn routes() -> Routes {
    Routes::new()
        .route("/api/exchanges", Scope::List(NAME), get(list))
        .route("/api/exchanges/{vhost}", Scope::Vhost("vhost"), get(list_of_vhost))
        .route(
            "/api/exchanges/{vhost}/{name}",
            Scope::Vhost("vhost"),
            get(show).put(declare).delete(remove),
        )
        .merge(publish::routes())
}

/// The exchanges of the vhosts that the user has permissions in; an administrator sees all.
async fn list(
    State(node): State<SharedNode>,
    Management(caller): Management,
    query: Query,
) -> Result<List, ApiError> {
    let seen = node.vhost_names().into_iter().filter(|vhost| caller.can_enter(vhost));
    let exchanges = seen.filter_map(|vhost| node.exchanges(&vhost)).flatten().collect();
    answer(&node, exchanges, query)
}

async fn list_of_vhost(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(vhost): Name,
    query: Query,
) -> Result<List, ApiError> {
    check_can_enter(&caller, &vhost)?;
    let exchanges = node.exchanges(&vhost).ok_or_else(ApiError::not_found)?;
    answer(&node, exchanges, query)
}

async fn show(
    State(node): State<SharedNode>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    query: Query,
) -> Result<Json, ApiError> {
    check_can_enter(&caller, &vhost)?;
    let exchange = node.exchange(&vhost, exchange_name(&name)).ok_or_else(ApiError::not_found)?;
    let trend = node.history().read(|h| h.of_exchange(&vhost, exchange.id, &query.ranges));
    let mut object = to_row(&exchange, &trend, &query, Part::Whole).into_fields();
    if !query.disable_stats {
        // No counts by queue and channel; RabbitMQ has them on demand only.
        object.insert("incoming".to_owned(), json!([]));
        object.insert("outgoing".to_owned(), json!([]));
    }
    Ok(Json::ok(query.select_columns(Value::Object(object))))
}

fn answer(
    node: &SharedNode,
    mut exchanges: Vec<ExchangeSnapshot>,
    query: Query,
) -> Result<List, ApiError> {
    exchanges.sort_by(|a, b| (&a.vhost, &a.name).cmp(&(&b.vhost, &b.name)));
    let query = Arc::new(query);
    let is_wanted = |exchange: &ExchangeSnapshot| query.matches_name(&exchange.name);
    let (node, shown) = (Arc::clone(node), Arc::clone(&query));
    query.answer_lazily(exchanges, is_wanted, move |exchanges, part| {
        list_to_json(&node, exchanges, &shown, part)
    })
}

fn list_to_json(
    node: &SharedNode,
    exchanges: &[ExchangeSnapshot],
    query: &Query,
    part: Part<'_>,
) -> Vec<Value> {
    let trends = trends(node, exchanges, &query.ranges, part, |history, one, ranges| {
        history.of_exchange(&one.vhost, one.id, ranges)
    });
    let all = exchanges.iter().zip(&trends);
    all.map(|(exchange, trend)| to_row(exchange, trend, query, part).into_json()).collect()
}

fn to_row<'a>(
    exchange: &ExchangeSnapshot,
    trend: &ExchangeTrend,
    query: &Query,
    part: Part<'a>,
) -> Row<'a> {
    let mut row = Row::new(part);
    row.put("name", || json!(*exchange.name));
    row.put("vhost", || json!(*exchange.vhost));
    row.put("type", || json!(exchange.kind.as_str()));
    row.put("durable", || json!(exchange.durable));
    row.put("auto_delete", || json!(exchange.auto_delete));
    row.put("internal", || json!(exchange.internal));
    row.put("arguments", || table_to_json(exchange.arguments.as_ref()));
    row.put("user_who_performed_action", || json!(*exchange.declared_by));
    if let Some(policy) = &exchange.policy {
        row.put("policy", || json!(**policy));
    }
    if let Some(messages_delayed) = exchange.messages_delayed {
        row.put("messages_delayed", || json!(messages_delayed));
    }
    // As in RabbitMQ, an exchange without publishes has no statistics.
    if !query.disable_stats && exchange.counters.published_in > 0 {
        row.put_object("message_stats", |stats| {
            let numbers = of_exchange(&exchange.counters);
            rates::put_in_row(stats, &EXCHANGE, StatsKind::Messages, &numbers, trend);
        });
    }
    row
}

async fn declare(
    State(node): State<SharedNode>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    Body(body): Body,
) -> Result<StatusCode, ApiError> {
    let user_vhost = UserVhost::for_create(node, caller, vhost)?;
    let fields = Fields::read(&body)?;
    let arguments = fields.get("arguments").map(table_from_json).transpose()?.unwrap_or_default();
    let name = exchange_name(&name);
    let kind = fields.get("type").map(|_| fields.text("type")).transpose()?;
    let declare = DeclareExchange {
        exchange: short("exchange", name)?,
        kind: kind.unwrap_or("direct"),
        passive: fields.flag("passive")?,
        durable: fields.flag("durable")?,
        auto_delete: fields.flag("auto_delete")?,
        internal: fields.flag("internal")?,
        nowait: false,
        arguments: arguments.as_ref(),
    };
    let is_new = user_vhost.node().exchange(&user_vhost.vhost, name).is_none();
    user_vhost.perform(Command::DeclareExchange(declare)).await?;
    Ok(made(is_new))
}

async fn remove(
    State(node): State<SharedNode>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    DeleteConditions { if_unused, .. }: DeleteConditions,
) -> Result<StatusCode, ApiError> {
    let user_vhost = UserVhost::for_existing(node, caller, vhost)?;
    let exchange = exchange_name(&name);
    if user_vhost.node().exchange(&user_vhost.vhost, exchange).is_none() {
        return Err(ApiError::not_found());
    }
    user_vhost.perform(Command::DeleteExchange { exchange, if_unused, nowait: false }).await?;
    Ok(StatusCode::NO_CONTENT)
}
