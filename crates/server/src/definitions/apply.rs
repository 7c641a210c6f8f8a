//! Applies a validated plan of definitions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use broker::access::Permissions;

use super::plan::{InVhost, Plan, Planned};
use super::problems::{left_out, log_left_out};
use super::validate::text;
use super::{Durable, ItemError, Place};
use crate::auth::TopicPattern;
use crate::limits::{IMPORT_LEADER_CHECK_INTERVAL, LEADER_WAIT};
use crate::node::Node;
use crate::node::metadata::users_and_vhosts::{Grant, Identities, NewUser, NewVhost};
use crate::requests::{ChangeError, ImportItems, Leader};
use crate::vhost::VhostHandle;

/// Positions of logs, names of vhosts that other nodes lead, and items that are left out.
type Applied = (Durable, Vec<String>, ImportItems);

/// Applies the whole plan, in RabbitMQ's order, but for what is in vhosts that other nodes of the cluster lead. Returns
/// the log positions that must be durable for the definitions to be durable, the names of those vhosts, and the items that
/// are left out.
///
/// # Errors
/// [`ItemError`] if the disk refuses a write, or if something the plan relies on has been removed meanwhile.
pub(super) fn apply(node: &Node, mut plan: Plan) -> Result<Applied, ItemError> {
    let users = std::mem::take(&mut plan.users);
    let vhosts = std::mem::take(&mut plan.vhosts);
    let vhost_limits = std::mem::take(&mut plan.vhost_limits);
    let permissions = std::mem::take(&mut plan.permissions);
    let topic_permissions = std::mem::take(&mut plan.topic_permissions);
    let global_parameters = std::mem::take(&mut plan.global_parameters);
    tell("users", users.len());
    tell("vhosts", vhosts.len());
    tell("permissions", permissions.len());
    tell("topic_permissions", topic_permissions.len());
    let identities = identities(users, vhosts, vhost_limits, permissions, topic_permissions);
    // Definitions of a vhost have none, and are imported by the node that leads the vhost.
    if !identities.is_empty() {
        node.take_over(identities).map_err(|unchanged| not_taken_over(&unchanged))?;
    }
    tell("global_parameters", global_parameters.len());
    if !global_parameters.is_empty() {
        let place = Place { family: "global_parameters", index: None };
        node.set_parameters(items(global_parameters))
            .map_err(|unchanged| ItemError { place, problem: unchanged.to_string() })?;
    }
    let elsewhere = led_elsewhere(node, &plan);
    plan.retain_vhosts(&|vhost| !elsewhere.iter().any(|name| name == vhost));
    log_left_out(&plan.left_out);
    let mut touched = BTreeMap::new();
    tell("exchanges", plan.exchanges.len());
    for planned in plan.exchanges {
        let exchange = &planned.item.what;
        let handle = touch(node, &mut touched, &planned)?;
        let made = handle.write(|vhost, now| {
            if exchange.is_reserved() || exchange.existing(vhost).is_some() {
                return Ok(());
            }
            vhost.execute(now, exchange.command())
        });
        let made = made.map_err(|problem| planned.not_leading(&problem))?;
        made.map_err(|refusal| planned.refused(text(&refusal)))?;
    }
    tell("policies", plan.policies.len());
    for planned in plan.policies {
        let handle = touch(node, &mut touched, &planned)?;
        let (kind, policy) = planned.item.what.clone();
        let started = handle.write(|vhost, now| {
            vhost.policies().check_room(kind, &policy)?;
            vhost.start_policy(now, kind, policy);
            Ok(())
        });
        let started = started.map_err(|problem| planned.not_leading(&problem))?;
        started.map_err(|problem: String| planned.refused(problem))?;
        let apply = || {
            let applied = handle.write(|vhost, now| vhost.apply_policies(now));
            applied.map_err(|problem| planned.not_leading(&problem))
        };
        while apply()? {}
    }
    tell("queues", plan.queues.len());
    for planned in plan.queues {
        let queue = &planned.item.what;
        let handle = touch(node, &mut touched, &planned)?;
        let made = handle.write(|vhost, now| {
            if queue.is_reserved() || queue.existing(vhost).is_some() {
                return Ok(());
            }
            vhost.execute(now, queue.command())
        });
        let made = made.map_err(|problem| planned.not_leading(&problem))?;
        made.map_err(|refusal| planned.refused(text(&refusal)))?;
    }
    tell("bindings", plan.bindings.len());
    for planned in plan.bindings {
        let binding = &planned.item.what;
        let handle = touch(node, &mut touched, &planned)?;
        let bound = handle.write(|vhost, now| {
            if binding.is_in_vain(vhost) {
                return Ok(());
            }
            vhost.execute(now, binding.command(&binding.destination))
        });
        let bound = bound.map_err(|problem| planned.not_leading(&problem))?;
        bound.map_err(|refusal| planned.refused(text(&refusal)))?;
    }
    let last = |handle: Arc<VhostHandle>| {
        let lsn = handle.read(|vhost, _| vhost.last_lsn());
        (handle, lsn)
    };
    Ok((touched.into_values().map(last).collect(), elsewhere, left_out(&plan.left_out)))
}

/// The vhosts of the plan that other nodes of the cluster lead. Waits for the leaders of new ones.
fn led_elsewhere(node: &Node, plan: &Plan) -> Vec<String> {
    if node.cluster.is_none() {
        return Vec::new();
    }
    let vhosts = plan.changed_vhosts().into_iter().filter(|vhost| {
        wait_for_leader(node, vhost);
        node.leader_of_vhost(vhost) != Leader::Here
    });
    vhosts.map(str::to_owned).collect()
}

/// Waits until a vhost has a leader, or nobody may elect one, but neither longer than clients do, nor once the node stops. Without the runtime, which
/// may end before this thread.
fn wait_for_leader(node: &Node, vhost: &str) {
    let until = Instant::now() + LEADER_WAIT;
    while !node.vhosts.has_leader_settled(vhost)
        && !*node.lifecycle.stopping.borrow()
        && Instant::now() < until
    {
        std::thread::sleep(IMPORT_LEADER_CHECK_INTERVAL);
    }
}

/// Users and vhosts with permissions, as the node takes them over.
pub(super) fn identities(
    users: Vec<Planned<NewUser>>,
    vhosts: Vec<Planned<NewVhost>>,
    vhost_limits: Vec<Planned<NewVhost>>,
    permissions: Vec<Planned<Grant<Permissions>>>,
    topic_permissions: Vec<Planned<Grant<TopicPattern>>>,
) -> Identities {
    Identities {
        users: items(users),
        // Limits come after the vhosts that they belong to.
        vhosts: items(vhosts).into_iter().chain(items(vhost_limits)).collect(),
        permissions: items(permissions),
        topic_permissions: items(topic_permissions),
    }
}

/// The error for users and vhosts that the node does not take over.
pub(super) fn not_taken_over(unchanged: &ChangeError) -> ItemError {
    let place = Place { family: "vhosts", index: None };
    ItemError { place, problem: unchanged.to_string() }
}

fn tell(family: &str, count: usize) {
    if count > 0 {
        tracing::info!(family, count, "definitions imported");
    }
}

/// The vhost of an item; marks its log as changed.
fn touch<T>(
    node: &Node,
    touched: &mut BTreeMap<String, Arc<VhostHandle>>,
    planned: &Planned<InVhost<T>>,
) -> Result<Arc<VhostHandle>, ItemError> {
    let name = &planned.item.vhost;
    if let Some(handle) = touched.get(name) {
        return Ok(Arc::clone(handle));
    }
    let handle = node.vhosts.get(name).ok_or_else(|| planned.refused("the vhost has gone"))?;
    touched.insert(name.clone(), Arc::clone(&handle));
    Ok(handle)
}

fn items<T>(planned: Vec<Planned<T>>) -> Vec<T> {
    planned.into_iter().map(|planned| planned.item).collect()
}
