//! Policies, and operator policies, which limit the values of policies and arguments.

use serde_json::{Value, json};

use crate::arguments::Switch;
use crate::command::{Call, Command, Section};
use crate::commands::access::vhosts::existing_vhost;
use crate::documents;
use crate::failure::Failure;
use crate::format::Output;
use crate::http::{HttpError, path};
use crate::rows::{document, rows_of, same};

/// Options of the commands that set a policy.
pub(in crate::commands) const SWITCHES: &[Switch] =
    &[Switch::integer("priority"), Switch::text("apply-to")];

/// The path of each kind.
pub(in crate::commands) const POLICIES: &str = "policies";
pub(in crate::commands) const OPERATOR_POLICIES: &str = "operator-policies";

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command::new(
        Section::Policies,
        "set_policy",
        "set_policy [--vhost <vhost>] [--priority <priority>] [--apply-to <apply-to>] <name> \
         <pattern> <definition>",
        "Sets a policy; it is in effect when the command returns",
        |call| set(call, POLICIES),
    )
    .words(3, 3)
    .switches(SWITCHES)
    .banner(|call| setting(call, "policy")),
    Command::new(
        Section::Policies,
        "clear_policy",
        "clear_policy [--vhost <vhost>] <name>",
        "Removes a policy",
        |call| clear(call, POLICIES),
    )
    .words(1, 1)
    .banner(|call| {
        format!("Clearing policy \"{}\" on vhost \"{}\" ...", call.word(0), call.vhost())
    }),
    Command::new(
        Section::Policies,
        "list_policies",
        "list_policies [--vhost <vhost>] [--no-table-headers] [--timeout <timeout>]",
        "Lists the policies of a vhost",
        |call| list(call, POLICIES),
    )
    .everywhere()
    .banner(|call| format!("Listing policies for vhost \"{}\" ...", call.vhost())),
    Command::new(
        Section::Policies,
        "set_operator_policy",
        "set_operator_policy [--vhost <vhost>] [--priority <priority>] [--apply-to <apply-to>] \
         <name> <pattern> <definition>",
        "Sets an operator policy, which limits policies and arguments",
        |call| set(call, OPERATOR_POLICIES),
    )
    .words(3, 3)
    .switches(SWITCHES)
    .banner(|call| setting(call, "operator policy override")),
    Command::new(
        Section::Policies,
        "clear_operator_policy",
        "clear_operator_policy [--vhost <vhost>] <name>",
        "Removes an operator policy",
        |call| clear(call, OPERATOR_POLICIES),
    )
    .words(1, 1)
    .banner(|call| {
        format!("Clearing operator policy \"{}\" on vhost \"{}\" ...", call.word(0), call.vhost())
    }),
    Command::new(
        Section::Policies,
        "list_operator_policies",
        "list_operator_policies [--vhost <vhost>] [--no-table-headers] [--timeout <timeout>]",
        "Lists the operator policies of a vhost",
        |call| list(call, OPERATOR_POLICIES),
    )
    .everywhere()
    .banner(|call| format!("Listing operator policy overrides for vhost \"{}\" ...", call.vhost())),
];

fn setting(call: &Call<'_>, what: &str) -> String {
    format!(
        "Setting {what} \"{}\" for pattern \"{}\" to \"{}\" with priority \"{}\" for vhost \"{}\" ...",
        call.word(0),
        call.word(1),
        call.word(2),
        call.options.integer("priority").unwrap_or_default(),
        call.vhost()
    )
}

/// The policy that words and options describe.
pub(in crate::commands) fn described(call: &Call<'_>) -> Result<Value, Failure> {
    Ok(json!({
        "pattern": call.word(1),
        "definition": documents::parse(call.word(2))?,
        "priority": call.options.integer("priority").unwrap_or_default(),
        "apply-to": call.options.text("apply-to").unwrap_or("all"),
    }))
}

fn set(call: &Call<'_>, kind: &str) -> Result<Output, Failure> {
    let policy = described(call)?;
    match call.node.api.put(&path(&[kind, call.vhost(), call.word(0)]), &policy) {
        Err(HttpError::Refused { status: 404, .. }) => Err(Failure::no_such_vhost(call.vhost())),
        result => result.map(|()| Output::Done).map_err(Failure::from),
    }
}

fn clear(call: &Call<'_>, kind: &str) -> Result<Output, Failure> {
    if call.node.api.remove(&path(&[kind, call.vhost(), call.word(0)]))? {
        Ok(Output::Done)
    } else {
        Err(Failure::no_such_parameter())
    }
}

fn list(call: &Call<'_>, kind: &str) -> Result<Output, Failure> {
    existing_vhost(call)?;
    let policies = call.node.api.get(&path(&[kind, call.vhost()]))?;
    Ok(rows_of(&policies, |policy| {
        vec![
            same(policy, "vhost"),
            same(policy, "name"),
            same(policy, "pattern"),
            same(policy, "apply-to"),
            document(policy, "definition"),
            same(policy, "priority"),
        ]
    })
    .into())
}
