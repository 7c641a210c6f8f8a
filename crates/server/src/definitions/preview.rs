//! Previews an import: reads and validates the definitions as the import does, and compares their outcome with
//! the node instead of applying it.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use broker::time::Now;
use broker::{PolicyKind, Vhost, VhostOptions};
use serde_json::{Map, Value, json};

use super::ItemError;
use super::apply::{identities, not_taken_over};
use super::difference::{Compared, Existing, SECRET, family};
use super::export;
use super::plan::{InVhost, Plan, Planned};
use super::problems::LeftOut;
use super::topology::{BindingDefinition, ExchangeDefinition, QueueDefinition};
use crate::auth::{User, Users};
use crate::json::limits::limits_to_json;
use crate::json::policy::policy_to_json;
use crate::json::vhost::vhost_metadata_to_json;
use crate::node::Node;
use crate::node::metadata::users_and_vhosts::Outcome;
use crate::requests::{FamilyPreview, ImportPreview, VhostSettings};

/// Compares the outcome of a validated plan with the node.
///
/// # Errors
/// [`ItemError`] if the node would not take over the users and vhosts.
pub(super) fn preview(node: &Node, plan: Plan) -> Result<ImportPreview, ItemError> {
    let before = node.auth.to_change();
    let Plan { users, vhosts, vhost_limits, permissions, topic_permissions, .. } = plan;
    let names = Names {
        users: names(&users, |user| user.name.clone()),
        vhosts: names(&vhosts, |vhost| vhost.name.clone()),
        limits: names(&vhost_limits, |vhost| vhost.name.clone()),
        permissions: names(&permissions, |grant| (grant.user.clone(), grant.vhost.clone())),
        topic_permissions: names(&topic_permissions, |grant| {
            (grant.user.clone(), grant.vhost.clone(), grant.what.exchange.clone())
        }),
    };
    let identities = identities(users, vhosts, vhost_limits, permissions, topic_permissions);
    let outcome = node.outcome(identities).map_err(|unchanged| not_taken_over(&unchanged))?;
    let known = ImportContext { node, before: &before, outcome: &outcome };
    let mut operator_policies = known.policies(&plan.policies, PolicyKind::Operator);
    operator_policies.extend(names.limits.iter().map(|name| known.limits(name)));
    let with_left_out = |name: &str, mut items: Vec<Compared>| {
        add_left_out(&mut items, plan.left_out.iter().filter(|one| one.family == name));
        items
    };
    let replaced =
        |name: &'static str, items| (name, family(with_left_out(name, items), Existing::Replaced));
    let kept =
        |name: &'static str, items| (name, family(with_left_out(name, items), Existing::Kept));
    let topology = known.topology(&plan.exchanges, &plan.queues, &plan.bindings);
    let families: Vec<(&'static str, FamilyPreview)> = vec![
        replaced("users", names.users.iter().map(|name| known.user(name)).collect()),
        replaced("vhosts", names.vhosts.iter().map(|name| known.vhost(name)).collect()),
        replaced("permissions", known.permissions(&names.permissions)),
        replaced("topic_permissions", known.topic_permissions(&names.topic_permissions)),
        replaced("global_parameters", known.global_parameters(&plan.global_parameters)),
        replaced("parameters", operator_policies),
        replaced("policies", known.policies(&plan.policies, PolicyKind::User)),
        kept("exchanges", topology.exchanges),
        kept("queues", topology.queues),
        kept("bindings", topology.bindings),
    ];
    Ok(ImportPreview { families })
}

/// Adds the items of a family that are left out, and the reasons of items that lose a part.
fn add_left_out<'a>(items: &mut Vec<Compared>, left_out: impl Iterator<Item = &'a LeftOut>) {
    for one in left_out {
        let reason = Some(one.reason.clone());
        if one.is_whole {
            let identity = one.identity.clone();
            items.push(Compared { identity, before: None, after: None, reason });
        } else if let Some(item) = items.iter_mut().find(|item| item.identity == one.identity) {
            item.reason = reason;
        }
    }
}

/// The names of users, vhosts and permissions in a plan.
struct Names {
    users: BTreeSet<String>,
    vhosts: BTreeSet<String>,
    limits: BTreeSet<String>,
    permissions: BTreeSet<(String, String)>,
    topic_permissions: BTreeSet<(String, String, String)>,
}

fn names<T, N: Ord>(planned: &[Planned<T>], name: impl Fn(&T) -> N) -> BTreeSet<N> {
    planned.iter().map(|planned| name(&planned.item)).collect()
}

fn identity<const N: usize>(fields: [(&str, &str); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect()
}

/// Queues, exchanges and bindings of all vhosts, compared.
#[derive(Default)]
struct Topology {
    exchanges: Vec<Compared>,
    queues: Vec<Compared>,
    bindings: Vec<Compared>,
}

/// The node before the import, and its users and vhosts after the import.
struct ImportContext<'a> {
    node: &'a Node,
    before: &'a Users,
    outcome: &'a Outcome,
}

impl ImportContext<'_> {
    fn user(&self, name: &str) -> Compared {
        let shown = |user: &User| {
            let (hash, algorithm) = user.password.to_bytes();
            json!({
                SECRET: format!("{algorithm} {}", STANDARD.encode(hash)),
                "tags": user.tags,
                "limits": limits_to_json(&user.limits),
            })
        };
        Compared {
            reason: None,
            identity: identity([("name", name)]),
            before: self.before.get(name).map(|user| shown(user)),
            after: self.outcome.users.get(name).map(|user| shown(user)),
        }
    }

    fn settings(&self, vhost: &str) -> Option<VhostSettings> {
        self.node.vhosts.get(vhost).map(|handle| (*handle.settings()).clone())
    }

    fn vhost(&self, name: &str) -> Compared {
        let shown = |settings: &VhostSettings| {
            json!({
                "metadata": vhost_metadata_to_json(settings),
                "limits": limits_to_json(&settings.limits),
            })
        };
        Compared {
            reason: None,
            identity: identity([("name", name)]),
            before: self.settings(name).as_ref().map(shown),
            after: self.outcome.vhosts.get(name).map(shown),
        }
    }

    /// The limits of a vhost, which are a parameter.
    fn limits(&self, vhost: &str) -> Compared {
        let shown = |settings: &VhostSettings| json!({"value": limits_to_json(&settings.limits)});
        let after = self.outcome.vhosts.get(vhost);
        let before = self.settings(vhost);
        let is_new = before.as_ref().is_some_and(|settings| settings.limits.is_empty())
            && after.is_some_and(|settings| !settings.limits.is_empty());
        Compared {
            reason: None,
            identity: identity([
                ("component", "vhost-limits"),
                ("name", "limits"),
                ("vhost", vhost),
            ]),
            before: before.filter(|_| !is_new).as_ref().map(shown),
            after: after.map(shown),
        }
    }

    fn permissions(&self, names: &BTreeSet<(String, String)>) -> Vec<Compared> {
        let of = |users: &Users, user: &str, vhost: &str| {
            Some(export::permission(user, vhost, users.get(user)?.permissions.get(vhost)?))
        };
        let compared = names.iter().map(|(user, vhost)| Compared {
            reason: None,
            identity: identity([("user", user), ("vhost", vhost)]),
            before: of(self.before, user, vhost),
            after: of(&self.outcome.users, user, vhost),
        });
        compared.collect()
    }

    fn topic_permissions(&self, names: &BTreeSet<(String, String, String)>) -> Vec<Compared> {
        let of = |users: &Users, user: &str, vhost: &str, exchange: &str| {
            let patterns = users.get(user)?.topic_permissions.get(vhost)?;
            let pattern = patterns.iter().find(|pattern| pattern.exchange == exchange)?;
            Some(export::topic_permission(user, vhost, pattern))
        };
        let compared = names.iter().map(|(user, vhost, exchange)| Compared {
            reason: None,
            identity: identity([("user", user), ("vhost", vhost), ("exchange", exchange)]),
            before: of(self.before, user, vhost, exchange),
            after: of(&self.outcome.users, user, vhost, exchange),
        });
        compared.collect()
    }

    fn global_parameters(&self, planned: &[Planned<(String, Value)>]) -> Vec<Compared> {
        let known: BTreeMap<String, Value> =
            self.node.global_parameters.all().into_iter().collect();
        let compared = planned.iter().map(|planned| {
            let (name, value) = &planned.item;
            Compared {
                reason: None,
                identity: identity([("name", name)]),
                before: known.get(name).map(|value| json!({ "value": value })),
                after: Some(json!({ "value": value })),
            }
        });
        compared.collect()
    }

    fn policies(
        &self,
        planned: &[Planned<InVhost<(PolicyKind, broker::Policy)>>],
        of: PolicyKind,
    ) -> Vec<Compared> {
        let mut compared = Vec::new();
        for (vhost, planned) in by_vhost(planned) {
            let handle = self.node.vhosts.get(vhost);
            let known = handle.map(|handle| handle.read(|v, _| v.policies().clone()));
            for (kind, policy) in planned.into_iter().filter(|(kind, _)| *kind == of) {
                let existing = known.as_ref().and_then(|known| known.get(*kind, &policy.name));
                let mut identity = identity([("vhost", vhost), ("name", &policy.name)]);
                if of == PolicyKind::Operator {
                    identity.insert("component".to_owned(), json!("operator_policy"));
                }
                compared.push(Compared {
                    reason: None,
                    identity,
                    before: existing.map(|policy| policy_to_json(policy)),
                    after: Some(policy_to_json(policy)),
                });
            }
        }
        compared
    }

    fn topology(
        &self,
        exchanges: &[Planned<InVhost<ExchangeDefinition>>],
        queues: &[Planned<InVhost<QueueDefinition>>],
        bindings: &[Planned<InVhost<BindingDefinition>>],
    ) -> Topology {
        let (exchanges, queues) = (by_vhost(exchanges), by_vhost(queues));
        let bindings = by_vhost(bindings);
        let vhosts: BTreeSet<&str> =
            exchanges.keys().chain(queues.keys()).chain(bindings.keys()).copied().collect();
        let mut all = Topology::default();
        for vhost in vhosts {
            let some = Declared {
                exchanges: exchanges.get(vhost).map_or(&[][..], Vec::as_slice),
                queues: queues.get(vhost).map_or(&[][..], Vec::as_slice),
                bindings: bindings.get(vhost).map_or(&[][..], Vec::as_slice),
            };
            some.compare(vhost, &self.existing(vhost, &some), &mut all);
        }
        all
    }

    /// The existing exchanges, queues and bindings of a vhost that the plan names.
    fn existing(&self, vhost: &str, planned: &Declared<'_>) -> Found {
        let after = self.outcome.vhosts.get(vhost).cloned().or_else(|| self.settings(vhost));
        let default_queue_type = after.map(|settings| settings.default_queue_type);
        let Some(handle) = self.node.vhosts.get(vhost) else {
            return Found { default_queue_type, ..Found::default() };
        };
        handle.read(|vhost, _| {
            let exchanges = planned.exchanges.iter().filter_map(|one| one.existing(vhost));
            let queues = planned.queues.iter().filter_map(|one| one.existing(vhost));
            let sources: BTreeSet<&str> =
                planned.bindings.iter().map(|binding| binding.source.as_str()).collect();
            let sources = sources.into_iter().filter_map(|name| vhost.exchange(name));
            let of = |source| BindingDefinition::from(vhost, source);
            let in_vain = planned.bindings.iter().filter(|binding| binding.is_in_vain(vhost));
            Found {
                default_queue_type,
                exchanges: exchanges.map(ExchangeDefinition::of).map(named_exchange).collect(),
                queues: queues.map(QueueDefinition::of).map(named_queue).collect(),
                bindings: sources.flat_map(of).map(|binding| shown(&binding)).collect(),
                in_vain: in_vain.map(|binding| shown(binding)).collect(),
            }
        })
    }
}

fn named_exchange(exchange: ExchangeDefinition) -> (String, ExchangeDefinition) {
    (exchange.name.clone(), exchange)
}

fn named_queue(queue: QueueDefinition) -> (String, QueueDefinition) {
    (queue.name.clone(), queue)
}

/// A binding as text, by which bindings are compared.
fn shown(binding: &BindingDefinition) -> String {
    export::binding(binding).to_string()
}

/// The planned items of one vhost.
struct Declared<'a> {
    exchanges: &'a [&'a ExchangeDefinition],
    queues: &'a [&'a QueueDefinition],
    bindings: &'a [&'a BindingDefinition],
}

/// The existing items of one vhost.
#[derive(Default)]
struct Found {
    /// The default queue type after the import.
    default_queue_type: Option<broker::QueueType>,
    exchanges: BTreeMap<String, ExchangeDefinition>,
    queues: BTreeMap<String, QueueDefinition>,
    /// Existing bindings, as text.
    bindings: BTreeSet<String>,
    /// Planned bindings that are left out, as text.
    in_vain: BTreeSet<String>,
}

impl Declared<'_> {
    fn compare(&self, vhost: &str, found: &Found, all: &mut Topology) {
        let mut scratch = Vhost::new(vhost, [0; 32], VhostOptions::default());
        if let Some(queue_type) = found.default_queue_type {
            scratch.set_default_queue_type(queue_type);
        }
        for exchange in self.exchanges {
            all.exchanges.push(Compared {
                reason: None,
                identity: identity([("vhost", vhost), ("name", &exchange.name)]),
                before: found.exchanges.get(&exchange.name).map(export::exchange),
                after: (!exchange.is_reserved()).then(|| export::exchange(exchange)),
            });
        }
        for queue in self.queues {
            let existing = found.queues.get(&queue.name);
            let after = match existing {
                Some(_) => export::queue(&with_defaults(&mut scratch, queue)),
                None => export::queue(queue),
            };
            all.queues.push(Compared {
                reason: None,
                identity: identity([("vhost", vhost), ("name", &queue.name)]),
                before: existing.map(export::queue),
                after: (!queue.is_reserved()).then_some(after),
            });
        }
        for binding in self.bindings {
            let text = shown(binding);
            let is_skipped = found.in_vain.contains(&text);
            let mut identity = identity([("vhost", vhost)]);
            if let Value::Object(fields) = export::binding(binding) {
                identity.extend(fields);
            }
            all.bindings.push(Compared {
                reason: None,
                identity,
                before: found.bindings.contains(&text).then(|| json!({})),
                after: (!is_skipped).then(|| json!({})),
            });
        }
    }
}

/// The queue as it would be if it were declared, with the defaults of its vhost.
fn with_defaults(scratch: &mut Vhost, queue: &QueueDefinition) -> QueueDefinition {
    let now = Now::from_millis(0);
    // A queue that cannot be declared is compared as it is written.
    let _ = scratch.execute(now, queue.command());
    QueueDefinition::of_or(scratch.queue(&queue.name), queue)
}

/// Items by vhost, in the order of the definitions.
fn by_vhost<T>(planned: &[Planned<InVhost<T>>]) -> BTreeMap<&str, Vec<&T>> {
    let mut vhosts: BTreeMap<&str, Vec<&T>> = BTreeMap::new();
    for planned in planned {
        vhosts.entry(&planned.item.vhost).or_default().push(&planned.item.what);
    }
    vhosts
}
