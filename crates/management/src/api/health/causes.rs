//! The causes of findings: for each resource that a finding names, the setting or the client behind the problem.
//!
//! Findings are computed from copied numbers of all queues; a cause is asked for only where a finding names a resource.

use broker::dead_letter::DeathReason;
use broker::{ExplainedKey, PolicyKey, Source};
use server::json::table::bytes_to_text;
use server::requests::Caller;
use server::snapshot::client::ClientDescription;

use crate::findings::{Facts, Finding, FindingKind, Resource, dropped_by_reason, in_words};
use crate::http::extract::SharedNode;

/// Findings about consumers.
const OF_CONSUMERS: [FindingKind; 2] = [FindingKind::ConsumersAtLimit, FindingKind::ConsumersSlow];

/// Adds the causes to the resources that the findings name.
pub(super) fn add_causes(
    node: &SharedNode,
    caller: &Caller,
    facts: &Facts,
    findings: &mut [Finding],
) {
    for finding in findings {
        for resource in &mut finding.resources {
            let Some(vhost) = resource.vhost.as_deref() else { continue };
            let detail = if finding.kind == FindingKind::MessagesDropped {
                dropped(node, facts, vhost, resource)
            } else if OF_CONSUMERS.contains(&finding.kind) {
                busiest_consumer(node, caller, vhost, resource)
            } else if finding.kind == FindingKind::PublishesUnroutable {
                unroutable(node, caller, vhost, resource)
            } else {
                None
            };
            if let Some(detail) = detail {
                resource.detail = detail;
            }
        }
    }
}

/// The deaths in a queue without a dead-letter exchange, each reason with the setting that ends messages so.
fn dropped(node: &SharedNode, facts: &Facts, vhost: &str, queue: &Resource) -> Option<String> {
    let of_vhost = facts.vhosts.iter().find(|one| one.name == vhost)?;
    let (view, _) = of_vhost.queues.iter().find(|(view, _)| *view.name == *queue.name)?;
    let explained = node.explain_queue(vhost, &queue.name)?;
    let words = |(reason, count): (DeathReason, u64)| {
        let settings = settings_of(reason, &explained.explanation.keys);
        let settings = settings.map(|settings| format!(" ({settings})"));
        in_words(reason, count) + &settings.unwrap_or_default()
    };
    Some(dropped_by_reason(view).into_iter().map(words).collect::<Vec<String>>().join(", "))
}

/// The settings in force by which messages die for this reason; none if no setting is the cause.
fn settings_of(reason: DeathReason, keys: &[ExplainedKey]) -> Option<String> {
    let names: &[PolicyKey] = match reason {
        DeathReason::Expired => &[PolicyKey::MessageTtl],
        DeathReason::Maxlen => &[PolicyKey::MaxLength, PolicyKey::MaxLengthBytes],
        DeathReason::DeliveryLimit => &[PolicyKey::DeliveryLimit],
        DeathReason::Rejected => &[],
    };
    let in_force = keys.iter().filter(|one| names.contains(&one.key));
    let settings = in_force.filter_map(|one| Some((one, one.value.as_ref()?)));
    let words = settings.map(|(one, value)| {
        let from = match (one.source, &one.source_name) {
            (Source::Argument, _) => ", an argument of the queue".to_owned(),
            (Source::Policy, Some(name)) => format!(" of the policy {name}"),
            (Source::OperatorPolicy, Some(name)) => format!(" of the operator policy {name}"),
            _ => ", the default".to_owned(),
        };
        format!("{} {value}{from}", one.key.as_str())
    });
    let words: Vec<String> = words.collect();
    match (reason, words.is_empty()) {
        (DeathReason::Expired, true) => Some("by the expiration that the publisher set".to_owned()),
        (_, true) => None,
        (_, false) => Some(words.join(", ")),
    }
}

/// The consumer of a queue that holds the most unacknowledged messages.
fn busiest_consumer(
    node: &SharedNode,
    caller: &Caller,
    vhost: &str,
    queue: &Resource,
) -> Option<String> {
    let consumer = node.busiest_consumer(vhost, &queue.name)?;
    let client = client_in_words(caller, consumer.client.as_deref()?)?;
    Some(format!("{}, {} of them held by {client}", queue.detail, consumer.unacked))
}

/// The last key that an exchange led to no queue, and the client that used it; none if the user may not see the client,
/// or may not know whose client it was.
fn unroutable(
    node: &SharedNode,
    caller: &Caller,
    vhost: &str,
    exchange: &Resource,
) -> Option<String> {
    let (last, client) = node.last_unroutable(vhost, &exchange.name)?;
    let from = match client {
        Some(client) => format!(" from {}", client_in_words(caller, &client)?),
        None if caller.is_monitor() => String::new(),
        None => return None,
    };
    let key = bytes_to_text(last.routing_key.as_bytes());
    Some(format!("{}, the last one with key '{key}'{from}", exchange.detail))
}

/// A client by the name that it gave itself, or else by its connection; none if the user may not see it.
fn client_in_words(caller: &Caller, client: &ClientDescription) -> Option<String> {
    let name = client.connection_name.as_ref().unwrap_or(&client.name);
    caller.can_see_client(&client.user).then(|| format!("'{name}'"))
}
