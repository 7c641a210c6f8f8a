//! Changes of exchanges: declare, delete.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::put;
use broker::{Command, DeclareExchange};

use crate::api::exchanges::name_in_path;
use crate::api::list_query::Conditions;
use crate::api::user_channel::{Entry, short};
use crate::http::access::Management;
use crate::http::answer::{ApiError, made};
use crate::http::extract::{Body, NameInVhost, Shared};
use crate::http::fields::Fields;
use crate::json::table_from_json::table_from_json;

/// The paths.
pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/api/exchanges/{vhost}/{name}", put(declare).delete(remove))
}

async fn declare(
    State(node): State<Shared>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    Body(body): Body,
) -> Result<StatusCode, ApiError> {
    let entry = Entry::to_make(node, caller, vhost)?;
    let fields = Fields::read(&body)?;
    let arguments = fields.get("arguments").map(table_from_json).transpose()?.unwrap_or_default();
    let name = name_in_path(&name);
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
    let is_new = entry.node().exchange(&entry.vhost, name).is_none();
    entry.perform(Command::DeclareExchange(declare)).await?;
    Ok(made(is_new))
}

async fn remove(
    State(node): State<Shared>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    Conditions { if_unused, .. }: Conditions,
) -> Result<StatusCode, ApiError> {
    let entry = Entry::to_remove(node, caller, vhost)?;
    let exchange = name_in_path(&name);
    if entry.node().exchange(&entry.vhost, exchange).is_none() {
        return Err(ApiError::not_found());
    }
    entry.perform(Command::DeleteExchange { exchange, if_unused, nowait: false }).await?;
    Ok(StatusCode::NO_CONTENT)
}
