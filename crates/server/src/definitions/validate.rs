//! Validates a plan on a scratch vhost, to find the errors that only the core detects before anything
//! changes. The scratch vhost gets copies of the existing exchanges and queues that the plan refers to.

use std::collections::{BTreeMap, BTreeSet};

use amqp::reply_code::ReplyCode;
use amqp::table::Table;
use broker::refusal::Refusal;
use broker::time::Now;
use broker::{Vhost, VhostOptions};

use super::ItemError;
use super::plan::{InVhost, Plan, Planned};
use super::problems::Problems;
use super::topology::{ExchangeDefinition, QueueDefinition, is_reserved};
use crate::node::Node;

/// Checks that everything in `plan` can be applied, but for the contents of the vhosts in `checked`, which other nodes
/// check. With `skips_unsupported`, bindings from or to what is left out are left out of the plan.
pub(super) fn validate(
    node: &Node,
    plan: &mut Plan,
    checked: &BTreeSet<String>,
    skips_unsupported: bool,
    problems: &mut Problems,
) {
    let refused = |of: &'static str| {
        let of_family = plan.refused.iter().filter(move |(family, _)| *family == of);
        of_family.map(|(_, name)| name.as_str())
    };
    let users = plan.users.iter().map(|planned| &*planned.item.name);
    let vhosts = plan.vhosts.iter().map(|planned| planned.item.name.as_str());
    let known = PlanContext {
        node,
        users: users.chain(refused("users")).collect(),
        vhosts: vhosts.chain(refused("vhosts")).collect(),
    };
    problems.check(check_global_parameters(node, plan));
    for planned in &plan.vhost_limits {
        problems.check(known.check_vhost(planned, &planned.item.name));
    }
    for planned in &plan.permissions {
        problems.check(known.check_vhost(planned, &planned.item.vhost));
        problems.check(known.check_user(planned, &planned.item.user));
    }
    for planned in &plan.topic_permissions {
        problems.check(known.check_vhost(planned, &planned.item.vhost));
        problems.check(known.check_user(planned, &planned.item.user));
    }
    let is_own = |vhost: &&str| !checked.contains(*vhost);
    for vhost in known.vhosts_of(&plan.policies, problems).into_iter().filter(is_own) {
        check_policies(node, plan, vhost, problems);
    }
    let mut vhosts = known.vhosts_of(&plan.exchanges, problems);
    vhosts.append(&mut known.vhosts_of(&plan.queues, problems));
    vhosts.append(&mut known.vhosts_of(&plan.bindings, problems));
    let mut without_end = BTreeMap::new();
    for vhost in vhosts.into_iter().filter(is_own) {
        topology(node, plan, vhost, skips_unsupported.then_some(&mut without_end), problems);
    }
    plan.leave_out_bindings(&without_end);
}

/// Checks that the node has room for the global parameters of `plan`.
fn check_global_parameters(node: &Node, plan: &Plan) -> Result<(), ItemError> {
    let new: Vec<_> = plan.global_parameters.iter().map(|planned| planned.item.clone()).collect();
    node.global_parameters.check_room(&new).map_err(|(at, problem)| {
        let planned = &plan.global_parameters[at];
        planned.refused(problem)
    })
}

/// Checks that a vhost has room for the policies of `plan`.
fn check_policies(node: &Node, plan: &Plan, vhost: &str, problems: &mut Problems) {
    let known = node.vhosts.get(vhost).map(|handle| handle.read(|v, _| v.policies().clone()));
    let mut policies = known.unwrap_or_default();
    for planned in of_vhost(&plan.policies, vhost) {
        let (kind, policy) = &planned.item.what;
        let room = policies.check_room(*kind, policy);
        if problems.check(room.map_err(|problem| planned.refused(problem))) {
            policies.set(*kind, policy.clone());
        }
    }
}

/// Existing users and vhosts, and those that the plan creates.
struct PlanContext<'a> {
    node: &'a Node,
    users: BTreeSet<&'a str>,
    vhosts: BTreeSet<&'a str>,
}

impl PlanContext<'_> {
    fn check_user<T>(&self, planned: &Planned<T>, name: &str) -> Result<(), ItemError> {
        if self.users.contains(name) || self.node.auth.user(name).is_some() {
            return Ok(());
        }
        Err(planned.refused(format!("there is no user '{name}'")))
    }

    fn check_vhost<T>(&self, planned: &Planned<T>, name: &str) -> Result<(), ItemError> {
        if self.vhosts.contains(name) || self.node.vhosts.get(name).is_some() {
            return Ok(());
        }
        Err(planned.refused(format!(
            "Please create virtual host \"{name}\" prior to importing definitions."
        )))
    }

    /// The vhosts of items that exist. The first item in each other vhost is a problem.
    fn vhosts_of<'a, T>(
        &self,
        items: &'a [Planned<InVhost<T>>],
        problems: &mut Problems,
    ) -> BTreeSet<&'a str> {
        let mut names: BTreeMap<&str, bool> = BTreeMap::new();
        for planned in items {
            let name = &*planned.item.vhost;
            names.entry(name).or_insert_with(|| problems.check(self.check_vhost(planned, name)));
        }
        names.into_iter().filter(|(_, exists)| *exists).map(|(name, _)| name).collect()
    }
}

/// Declares the exchanges, queues and bindings of one vhost on a scratch vhost. Bindings without a source or a destination
/// go, by their number, to `without_end` if there is one.
fn topology(
    node: &Node,
    plan: &Plan,
    vhost: &str,
    mut without_end: Option<&mut BTreeMap<usize, String>>,
    problems: &mut Problems,
) {
    let now = Now::from_millis(0);
    let mut scratch = Vhost::new(vhost, [0; 32], VhostOptions::default());
    let existing = Existing::of(node, plan, vhost);
    for exchange in &existing.exchanges {
        // An existing exchange is valid, so the result does not matter.
        let _ = scratch.execute(now, exchange.command());
    }
    // Stands in for every existing queue; its name is too long for any other queue.
    let stand_in = QueueDefinition {
        name: "-".repeat(1 + amqp::limits::SHORT_STRING_BYTES_MAX),
        durable: true,
        auto_delete: false,
        arguments: Table::default(),
    };
    let _ = scratch.execute(now, stand_in.command());
    for planned in of_vhost(&plan.exchanges, vhost) {
        let exchange = &planned.item.what;
        if !is_reserved(&exchange.name) && scratch.exchange(&exchange.name).is_none() {
            let declared = scratch.execute(now, exchange.command());
            problems.check(declared.map_err(|refusal| planned.refused(text(&refusal))));
        }
    }
    for planned in of_vhost(&plan.queues, vhost) {
        let queue = &planned.item.what;
        let exists = existing.queues.contains(&queue.name) || scratch.queue(&queue.name).is_some();
        if !is_reserved(&queue.name) && !exists {
            let declared = scratch.execute(now, queue.command());
            problems.check(declared.map_err(|refusal| planned.refused(text(&refusal))));
        }
    }
    for planned in of_vhost(&plan.bindings, vhost) {
        let binding = &planned.item.what;
        let exists = binding.to_queue && existing.queues.contains(&binding.destination);
        if !exists && binding.is_in_vain(&scratch) {
            continue;
        }
        let destination = if exists { &stand_in.name } else { &binding.destination };
        let Err(refusal) = scratch.execute(now, binding.command(destination)) else { continue };
        match (&mut without_end, planned.place.index) {
            (Some(without_end), Some(number)) if refusal.code == ReplyCode::NotFound => {
                without_end.insert(number, text(&refusal));
            }
            _ => problems.add(planned.refused(text(&refusal))),
        }
    }
}

fn of_vhost<'a, T>(
    items: &'a [Planned<InVhost<T>>],
    vhost: &'a str,
) -> impl Iterator<Item = &'a Planned<InVhost<T>>> + Clone {
    items.iter().filter(move |planned| planned.item.vhost == vhost)
}

/// The existing exchanges and queues of a vhost that the plan refers to.
#[derive(Default)]
struct Existing {
    exchanges: Vec<ExchangeDefinition>,
    queues: BTreeSet<String>,
}

impl Existing {
    fn of(node: &Node, plan: &Plan, vhost: &str) -> Self {
        let Some(handle) = node.vhosts.get(vhost) else {
            return Self::default();
        };
        let declared = of_vhost(&plan.exchanges, vhost).map(|planned| &planned.item.what.name);
        let sources = of_vhost(&plan.bindings, vhost).map(|planned| &planned.item.what.source);
        let destinations = of_vhost(&plan.bindings, vhost).map(|p| &p.item.what.destination);
        let queues = of_vhost(&plan.queues, vhost).map(|planned| &planned.item.what.name);
        let exchanges: BTreeSet<&String> =
            declared.chain(sources).chain(destinations.clone()).collect();
        handle.read(|vhost, _| Self {
            exchanges: exchanges
                .into_iter()
                .filter(|name| !is_reserved(name))
                .filter_map(|name| vhost.exchange(name).map(ExchangeDefinition::of))
                .collect(),
            queues: queues
                .chain(destinations)
                .filter(|name| vhost.queue(name).is_some())
                .cloned()
                .collect(),
        })
    }
}

/// The text of a refusal, as RabbitMQ words it.
pub(super) fn text(refusal: &Refusal) -> String {
    format!("{}: {}", refusal.code.name().to_ascii_lowercase(), refusal.explanation)
}
