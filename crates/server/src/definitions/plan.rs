//! The plan of an import: every item of the definitions, read and type-checked without looking at the node.

use std::collections::{BTreeMap, BTreeSet};

use amqp::table::{TableBuilder, Value as Field};
use broker::access::Permissions;
use broker::{Policy, PolicyKind};
use serde_json::{Map, Value};

use super::item::{Item, Place, Scope};
use super::problems::{LeftOut, Problems, identity};
use super::topology::{BindingDefinition, ExchangeDefinition, QueueDefinition};
use super::unsupported::{Lack, lack, no_component};
use super::{ItemError, Problem, export};
use crate::auth::password::PasswordHash;
use crate::auth::{TopicPattern, Users};
use crate::json::base64_text::bytes_from_base64;
use crate::json::depth::json_depth;
use crate::json::limits::limits_from_json;
use crate::json::policy::{PolicyError, policy_from_json};
use crate::json::vhost::{
    check_labels, replicas_from_json, tags_from_json, too_many_tags, vhost_metadata_from_json,
};
use crate::limits::{JSON_DEPTH_MAX, USER_TAGS_MAX};
use crate::node::Node;
use crate::node::metadata::users_and_vhosts::{
    Grant, NewUser, NewVhost, check_user_name, everything,
};
use crate::requests::{LimitName, VhostChange};
use crate::vhost::NotLeading;

/// All items to apply, in the order of the definitions.
#[derive(Default, Debug)]
pub(super) struct Plan {
    pub(super) users: Vec<Planned<NewUser>>,
    pub(super) vhosts: Vec<Planned<NewVhost>>,
    /// Limits of existing and of new vhosts.
    pub(super) vhost_limits: Vec<Planned<NewVhost>>,
    pub(super) permissions: Vec<Planned<Grant<Permissions>>>,
    pub(super) topic_permissions: Vec<Planned<Grant<TopicPattern>>>,
    pub(super) global_parameters: Vec<Planned<(String, Value)>>,
    pub(super) policies: Vec<Planned<InVhost<(PolicyKind, Policy)>>>,
    pub(super) exchanges: Vec<Planned<InVhost<ExchangeDefinition>>>,
    pub(super) queues: Vec<Planned<InVhost<QueueDefinition>>>,
    pub(super) bindings: Vec<Planned<InVhost<BindingDefinition>>>,
    /// Items that need what Leveret does not have.
    pub(super) left_out: Vec<LeftOut>,
    /// Names of users and of vhosts with problems of their own, which are no problems of the items that name them.
    pub(super) refused: BTreeSet<(&'static str, String)>,
}

/// An item to apply, with its place in the definitions.
#[derive(Debug)]
pub(super) struct Planned<T> {
    pub(super) place: Place,
    pub(super) item: T,
}

impl<T> Planned<T> {
    pub(super) fn refused(&self, problem: impl Into<String>) -> ItemError {
        ItemError { place: self.place, problem: problem.into() }
    }

    /// The item cannot be made because another node leads its vhost.
    pub(super) fn not_leading(&self, problem: &NotLeading) -> ItemError {
        self.refused(problem.to_string())
    }
}

/// An item that belongs to a vhost.
#[derive(Debug)]
pub(super) struct InVhost<T> {
    pub(super) vhost: String,
    pub(super) what: T,
}

impl Plan {
    /// Names of the vhosts in which the plan makes something.
    pub(super) fn changed_vhosts(&self) -> BTreeSet<&str> {
        let policies = self.policies.iter().map(|planned| &planned.item.vhost);
        let exchanges = self.exchanges.iter().map(|planned| &planned.item.vhost);
        let queues = self.queues.iter().map(|planned| &planned.item.vhost);
        let bindings = self.bindings.iter().map(|planned| &planned.item.vhost);
        policies.chain(exchanges).chain(queues).chain(bindings).map(String::as_str).collect()
    }

    /// Gives the user who imports, if there is one, all permissions in the vhosts that the import makes, as RabbitMQ does.
    /// Permissions in the definitions themselves come later.
    pub(super) fn grant_to_importer(&mut self, node: &Node, importer: Option<&str>) {
        // The node has no permissions of a user who is known from elsewhere.
        let Some(importer) = importer.filter(|name| node.auth.user(name).is_some()) else { return };
        let is_made = |vhost: &&Planned<NewVhost>| node.vhosts.get(&vhost.item.name).is_none();
        let grant = |vhost: &Planned<NewVhost>| {
            let (user, vhost) = (importer.to_owned(), vhost.item.name.clone());
            let place = Place { family: "permissions", index: None };
            Planned { place, item: Grant { user, vhost, what: everything() } }
        };
        let own: Vec<_> = self.vhosts.iter().filter(is_made).map(grant).collect();
        self.permissions.splice(0..0, own);
    }

    /// Leaves out what the plan makes in vhosts that are not `wanted`.
    pub(super) fn retain_vhosts(&mut self, wanted: &dyn Fn(&str) -> bool) {
        self.policies.retain(|planned| wanted(&planned.item.vhost));
        self.exchanges.retain(|planned| wanted(&planned.item.vhost));
        self.queues.retain(|planned| wanted(&planned.item.vhost));
        self.bindings.retain(|planned| wanted(&planned.item.vhost));
        self.left_out.retain(|one| one.vhost().is_none_or(wanted));
    }

    /// Leaves out the bindings at these places, each for a reason.
    pub(super) fn leave_out_bindings(&mut self, reasons: &BTreeMap<usize, String>) {
        let reason = |planned: &Planned<_>| planned.place.index.and_then(|at| reasons.get(&at));
        let of = |planned: &Planned<InVhost<BindingDefinition>>| {
            let scope = Scope::Vhost(&planned.item.vhost);
            Some(LeftOut {
                family: planned.place.family,
                identity: identity("bindings", scope, &export::binding(&planned.item.what)),
                reason: reason(planned)?.clone(),
                is_whole: true,
            })
        };
        self.left_out.extend(self.bindings.iter().filter_map(of));
        self.bindings.retain(|planned| reason(planned).is_none());
    }
}

/// The families that definitions of a vhost have.
pub(super) fn families_of_vhosts() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().map(|(family, _)| *family).filter(|family| !OF_THE_NODE.contains(family))
}

/// The component of the parameter that has the limits of a vhost.
pub(super) const VHOST_LIMITS: &str = "vhost-limits";

/// Reads one item of a family into the plan.
type Read = fn(&mut Plan, Place, &Item<'_>) -> Result<(), Problem>;

const FAMILIES: &[(&str, Read)] = &[
    ("users", |plan, place, item| keep(&mut plan.users, place, user(item))),
    ("vhosts", |plan, place, item| keep(&mut plan.vhosts, place, vhost(item))),
    ("permissions", |plan, place, item| keep(&mut plan.permissions, place, permission(item))),
    ("topic_permissions", |plan, place, item| {
        keep(&mut plan.topic_permissions, place, topic_permission(item))
    }),
    ("global_parameters", |plan, place, item| {
        keep(&mut plan.global_parameters, place, global_parameter(item))
    }),
    ("policies", |plan, place, item| {
        keep(&mut plan.policies, place, policy(item, item, PolicyKind::User))
    }),
    ("parameters", parameter),
    ("exchanges", |plan, place, item| keep(&mut plan.exchanges, place, exchange(item))),
    ("queues", |plan, place, item| keep(&mut plan.queues, place, queue(item))),
    ("bindings", |plan, place, item| keep(&mut plan.bindings, place, binding(item))),
];

/// Families that the definitions of a single vhost cannot contain.
const OF_THE_NODE: &[&str] =
    &["users", "vhosts", "permissions", "topic_permissions", "global_parameters"];

fn keep<T>(
    family: &mut Vec<Planned<T>>,
    place: Place,
    read: Result<T, Problem>,
) -> Result<(), Problem> {
    family.push(Planned { place, item: read? });
    Ok(())
}

/// Reads definitions into a plan, without the items that have problems. `users` are the users before the import: a password
/// in plain text that a user has already keeps its hash. With `skips_unsupported`, items that need what Leveret does not have
/// are left out.
pub(super) fn read(
    root: &Map<String, Value>,
    scope: Scope<'_>,
    users: &Users,
    skips_unsupported: bool,
    problems: &mut Problems,
) -> Plan {
    let mut plan = Plan::default();
    for (family, read) in FAMILIES {
        if matches!(scope, Scope::Vhost(_)) && OF_THE_NODE.contains(family) {
            continue;
        }
        let items = match root.get(*family) {
            None => continue,
            Some(Value::Array(items)) => items,
            Some(_) => {
                let place = Place { family, index: None };
                problems.add(ItemError { place, problem: "must be a list".to_owned() });
                continue;
            }
        };
        for (index, value) in items.iter().enumerate() {
            let place = Place { family, index: Some(index) };
            let lack = skips_unsupported.then(|| lack(family, value)).flatten();
            let mut leave_out = |reason, is_whole| {
                let identity = identity(family, scope, value);
                plan.left_out.push(LeftOut { family, identity, reason, is_whole });
            };
            let less = match lack {
                None => None,
                Some(Lack::Fields(less, reason)) => {
                    leave_out(reason, false);
                    Some(less)
                }
                Some(Lack::Item(reason)) => {
                    leave_out(reason, true);
                    continue;
                }
            };
            let value = less.as_ref().unwrap_or(value);
            let result = match value.is_object() {
                true => read(&mut plan, place, &Item { value, scope, users }),
                false => Err("must be an object".to_owned()),
            };
            let is_planned = problems.check(result.map_err(|problem| ItemError { place, problem }));
            if let (false, Some(name)) = (is_planned, value.get("name").and_then(Value::as_str)) {
                plan.refused.insert((family, name.to_owned()));
            }
        }
    }
    plan
}

fn user(item: &Item<'_>) -> Result<NewUser, Problem> {
    let tags = item.get("tags").map_or_else(|| Ok(Vec::new()), tags_from_json)?;
    if too_many_tags(&tags).is_some() {
        return Err(format!("{{too_many_tags,{USER_TAGS_MAX}}}"));
    }
    check_labels(&tags, "")?;
    let name = item.text("name")?.to_owned();
    check_user_name(&name)?;
    let password = match item.get("password") {
        Some(_) => {
            let password = item.text("password")?.as_bytes();
            let known = item.users.get(&name).map_or(&PasswordHash::None, |user| &user.password);
            known.renewed(password)
        }
        None => {
            let hash = item.text_or("password_hash", "")?;
            let bytes =
                bytes_from_base64(hash).map_err(|error| format!("'password_hash': {error}"))?;
            let algorithm = item.get("hashing_algorithm").map(|_| item.text("hashing_algorithm"));
            PasswordHash::from_import(&bytes, algorithm.transpose()?)
        }
    };
    let password = password.map_err(|error| error.to_string())?;
    Ok(NewUser { name, password, tags, limits: limits(item, "user limits")? })
}

fn vhost(item: &Item<'_>) -> Result<NewVhost, Problem> {
    let name = item.short("name")?.to_owned();
    // Older definitions have description and tags beside the name.
    let metadata = item.get("metadata").unwrap_or(item.value);
    let metadata = metadata.as_object().ok_or_else(|| "'metadata' must be an object".to_owned())?;
    let protected = metadata.get("protected_from_deletion").and_then(Value::as_bool);
    let change = VhostChange {
        metadata: Some(vhost_metadata_from_json(metadata)?),
        protected_from_deletion: protected,
        tracing: None,
        replicas: metadata.get("replicas").map(replicas_from_json).transpose()?,
    };
    Ok(NewVhost { name, change, limits: limits(item, "limits")? })
}

/// Reads the field `limits`; none if it is missing.
fn limits<L: LimitName>(item: &Item<'_>, of: &str) -> Result<Option<BTreeMap<L, i64>>, Problem> {
    match item.get("limits") {
        None => Ok(None),
        Some(Value::Object(limits)) => limits_from_json(limits, of).map(Some),
        // Some tools write an empty list for empty limits.
        Some(Value::Array(list)) if list.is_empty() => Ok(Some(BTreeMap::new())),
        Some(_) => Err("'limits' must be an object".to_owned()),
    }
}

fn permission(item: &Item<'_>) -> Result<Grant<Permissions>, Problem> {
    let what = Permissions {
        configure: item.pattern("configure")?,
        write: item.pattern("write")?,
        read: item.pattern("read")?,
    };
    grant(item, what)
}

fn topic_permission(item: &Item<'_>) -> Result<Grant<TopicPattern>, Problem> {
    item.pattern("write")?;
    item.pattern("read")?;
    let what = TopicPattern {
        exchange: item.short("exchange")?.to_owned(),
        write: item.text("write")?.to_owned(),
        read: item.text("read")?.to_owned(),
    };
    grant(item, what)
}

fn grant<T>(item: &Item<'_>, what: T) -> Result<Grant<T>, Problem> {
    Ok(Grant { user: item.text("user")?.to_owned(), vhost: item.vhost()?, what })
}

fn global_parameter(item: &Item<'_>) -> Result<(String, Value), Problem> {
    let value = item.value.get("value").ok_or_else(|| "'value' is missing".to_owned())?;
    if json_depth(value) > JSON_DEPTH_MAX {
        return Err(format!(
            "'value' has more than {JSON_DEPTH_MAX} lists and objects inside each other"
        ));
    }
    Ok((item.text("name")?.to_owned(), value.clone()))
}

/// Reads a runtime parameter: operator policies and vhost limits have an effect; parameters of other
/// components belong to features that Leveret does not have.
fn parameter(plan: &mut Plan, place: Place, item: &Item<'_>) -> Result<(), Problem> {
    let component = item.text("component")?;
    let value = || item.get("value").ok_or_else(|| "'value' is missing".to_owned());
    match component {
        "operator_policy" => {
            let policy = policy(item, &item.with(value()?), PolicyKind::Operator);
            keep(&mut plan.policies, place, policy)
        }
        VHOST_LIMITS => {
            let object = value()?.as_object().ok_or_else(|| "limits not a list".to_owned())?;
            let limits = Some(limits_from_json(object, "limits")?);
            let vhost = NewVhost { name: item.vhost()?, change: VhostChange::default(), limits };
            keep(&mut plan.vhost_limits, place, Ok(vhost))
        }
        _ => {
            item.text_or("name", "")?;
            plan.left_out.push(LeftOut {
                family: place.family,
                identity: identity(place.family, item.scope, item.value),
                reason: no_component(component),
                is_whole: true,
            });
            Ok(())
        }
    }
}

fn policy(
    item: &Item<'_>,
    value: &Item<'_>,
    kind: PolicyKind,
) -> Result<InVhost<(PolicyKind, Policy)>, Problem> {
    let name = item.text("name")?;
    let none = Map::new();
    let policy = policy_from_json(name, value.value.as_object().unwrap_or(&none), kind);
    let policy = policy.map_err(|problem| match problem {
        PolicyError::Missing(fields) => format!("'{}' is missing", fields.join("', '")),
        PolicyError::Invalid(problems) => problems.join(", "),
    })?;
    Ok(InVhost { vhost: item.vhost()?, what: (kind, policy) })
}

fn exchange(item: &Item<'_>) -> Result<InVhost<ExchangeDefinition>, Problem> {
    let what = ExchangeDefinition {
        name: item.short("name")?.to_owned(),
        kind: item.text("type")?.to_owned(),
        durable: item.flag("durable", true)?,
        auto_delete: item.flag("auto_delete", false)?,
        internal: item.flag("internal", false)?,
        arguments: item.arguments()?,
    };
    Ok(InVhost { vhost: item.vhost()?, what })
}

fn queue(item: &Item<'_>) -> Result<InVhost<QueueDefinition>, Problem> {
    let mut arguments = item.arguments()?;
    let kind = item.text_or("type", "")?;
    if !kind.is_empty() && arguments.as_ref().get("x-queue-type").is_none() {
        let mut with_type = TableBuilder::new();
        for (key, value) in arguments.as_ref().iter() {
            with_type.insert(key, value);
        }
        with_type.insert("x-queue-type", Field::LongStr(kind.as_bytes()));
        arguments = with_type.finish();
    }
    let what = QueueDefinition {
        name: item.short("name")?.to_owned(),
        durable: item.flag("durable", true)?,
        auto_delete: item.flag("auto_delete", false)?,
        arguments,
    };
    Ok(InVhost { vhost: item.vhost()?, what })
}

fn binding(item: &Item<'_>) -> Result<InVhost<BindingDefinition>, Problem> {
    let to_queue = match item.text("destination_type")? {
        "queue" => true,
        "exchange" => false,
        other => return Err(format!("there is no destination_type '{other}'")),
    };
    let what = BindingDefinition {
        source: item.short("source")?.to_owned(),
        destination: item.short("destination")?.to_owned(),
        to_queue,
        routing_key: item.short("routing_key")?.to_owned(),
        arguments: item.arguments()?,
    };
    Ok(InVhost { vhost: item.vhost()?, what })
}
