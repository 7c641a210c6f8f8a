//! Changes of queues: declare, delete, purge.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{delete, post, put};
use broker::{Command, DeclareQueue, DeleteQueue};
use serde_json::{Value, json};

use crate::api::list_query::Conditions;
use crate::api::user_channel::{Entry, short};
use crate::http::access::{Administrator, Management};
use crate::http::answer::{ApiError, made};
use crate::http::extract::{Body, NameInVhost, Shared};
use crate::http::fields::Fields;
use crate::json::table_from_json::table_from_json;

/// The paths.
pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/queues/{vhost}/{name}", put(declare).delete(remove))
        .route("/api/queues/{vhost}/{name}/contents", delete(purge))
        .route("/api/queues/{vhost}/{name}/actions", post(act))
        .route("/api/rebalance/queues", post(rebalance))
}

/// COMPAT: names in a body: the path names a queue or an exchange; in RabbitMQ `queue` or `exchange` in
/// the body wins.
async fn declare(
    State(node): State<Shared>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    Body(body): Body,
) -> Result<StatusCode, ApiError> {
    let entry = Entry::to_make(node, caller, vhost)?;
    let fields = Fields::read(&body)?;
    check_node(&entry, &fields)?;
    let exclusive = fields.flag("exclusive")?;
    let arguments = fields.get("arguments").map(table_from_json).transpose()?.unwrap_or_default();
    let declare = DeclareQueue {
        queue: short("queue", &name)?,
        passive: fields.flag("passive")?,
        // A queue that nobody owns is not exclusive, but it does not outlive what it would be.
        durable: fields.flag("durable")? && !exclusive,
        exclusive: false,
        auto_delete: fields.flag("auto_delete")?,
        nowait: false,
        arguments: arguments.as_ref(),
    };
    let is_new = entry.node().queue(&entry.vhost, &name).is_none();
    entry.perform(Command::DeclareQueue(declare)).await?;
    Ok(made(is_new))
}

/// Who says on which node must mean this one.
fn check_node(entry: &Entry, fields: &Fields) -> Result<(), ApiError> {
    let wanted = fields.text("node")?;
    if wanted.is_empty() || wanted == entry.node().snapshot().name {
        return Ok(());
    }
    Err(ApiError::bad_request(format!("Node {wanted} is not a cluster member")))
}

async fn remove(
    State(node): State<Shared>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    conditions: Conditions,
) -> Result<StatusCode, ApiError> {
    let entry = existing(Entry::to_remove(node, caller, vhost)?, &name)?;
    let Conditions { if_unused, if_empty } = conditions;
    let delete = DeleteQueue { queue: &name, if_unused, if_empty, nowait: false };
    entry.perform(Command::DeleteQueue(delete)).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn purge(
    State(node): State<Shared>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
) -> Result<StatusCode, ApiError> {
    let entry = existing(Entry::to_remove(node, caller, vhost)?, &name)?;
    entry.perform(Command::PurgeQueue { queue: &name, nowait: false }).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn existing(entry: Entry, queue: &str) -> Result<Entry, ApiError> {
    match entry.node().queue(&entry.vhost, queue) {
        Some(_) => Ok(entry),
        None => Err(ApiError::not_found()),
    }
}

/// Nothing can be done with a queue any more: mirrors, which were synchronised so, are gone.
async fn act(
    State(node): State<Shared>,
    Administrator(caller): Administrator,
    NameInVhost { vhost, name }: NameInVhost,
    Body(body): Body,
) -> Result<StatusCode, ApiError> {
    let entry = Entry::to_make(node, caller, vhost)?;
    if entry.node().queue(&entry.vhost, &name).is_none() {
        return Err(ApiError::missing("queue_not_found"));
    }
    let fields = Fields::read(&body)?;
    let [action]: [&Value; 1] = fields.required(["action"])?;
    Err(ApiError::bad_request(json!(["unknown", action])))
}

/// There is one node, where everything is already.
async fn rebalance(Administrator(_): Administrator) -> StatusCode {
    StatusCode::NO_CONTENT
}
