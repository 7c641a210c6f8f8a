//! Class exchange: `exchange.declare` and `exchange.delete`.

use std::sync::Arc;

use amqp::table::{Table, Value};

use crate::access::INTERNAL_USER;
use crate::access::Permission;
use crate::channel_key::ChannelKey;
use crate::command::DeclareExchange;
use crate::effect::{Event, Outgoing};
use crate::exchange::control::{SCHEDULE_EXCHANGE, SETTLE_EXCHANGE};
use crate::exchange::delayed::{HeldStore, named_routing_type};
use crate::exchange::federation_upstream::MAX_HOPS;
use crate::exchange::{Exchange, ExchangeDeclaration, ExchangeType};
use crate::ids::ExchangeId;
use crate::limits::EXCHANGE_MEMORY_BYTES;
use crate::message::Name;
use crate::queue::arguments::{check_argument, inequivalent};
use crate::record::Record;
use crate::refusal::{Refusal, Resource};
use crate::vhost::Vhost;
use crate::vhost::lifecycle::firehose::TRACE_EXCHANGE;
use crate::vhost::lifecycle::growth::check_arguments;

/// The exchanges that every vhost has (AMQP 0-9-1 section 3.1.3), and Leveret's for operations.
const PREDECLARED: [(&str, ExchangeType, bool); 9] = [
    ("", ExchangeType::Direct, false),
    ("amq.direct", ExchangeType::Direct, false),
    ("amq.fanout", ExchangeType::Fanout, false),
    ("amq.headers", ExchangeType::Headers, false),
    ("amq.match", ExchangeType::Headers, false),
    (SCHEDULE_EXCHANGE, ExchangeType::Direct, false),
    (SETTLE_EXCHANGE, ExchangeType::Direct, false),
    (TRACE_EXCHANGE, ExchangeType::Topic, true),
    ("amq.topic", ExchangeType::Topic, false),
];

/// The exchange of the vhost `/` that RabbitMQ can publish its log to. Leveret declares it and publishes nothing
/// there.
const LOG_EXCHANGE: (&str, ExchangeType, bool) = ("amq.rabbitmq.log", ExchangeType::Topic, true);

impl Vhost {
    pub(in crate::vhost) fn predeclare_exchanges(&mut self) {
        let log = (*self.name == *"/").then_some(LOG_EXCHANGE);
        for (name, kind, internal) in PREDECLARED.into_iter().chain(log) {
            let declaration = ExchangeDeclaration {
                name: name.into(),
                kind,
                durable: true,
                auto_delete: false,
                internal,
                arguments: Table::default(),
                alternate: None,
                declared_by: INTERNAL_USER.into(),
                store: None,
            };
            // Only types with arguments of their own can refuse them.
            let memory = self.topology.memory();
            if let Ok(exchange) = Exchange::new(declaration, self.topology.seed(), memory) {
                self.topology.insert_exchange(exchange);
            }
        }
    }

    /// The id of the exchange with this name.
    ///
    /// # Errors
    /// 404 if it does not exist.
    pub(in crate::vhost) fn find_exchange(&self, name: &str) -> Result<ExchangeId, Refusal> {
        let id = self.topology.exchange_id(name);
        id.ok_or_else(|| Refusal::not_found(self.exchange_resource(name)))
    }

    pub(in crate::vhost) fn declare_exchange(
        &mut self,
        at: ChannelKey,
        declare: DeclareExchange<'_>,
    ) -> Result<(), Refusal> {
        let name = declare.exchange.replace(['\r', '\n'], "");
        if declare.passive {
            refuse_default(&name)?;
            self.require_any(at, self.exchange_resource(&name))?;
            self.find_exchange(&name)?;
            self.answer(at, declare.nowait, Outgoing::ExchangeDeclareOk);
            return Ok(());
        }
        let kind = ExchangeType::from_name(declare.kind);
        let kind = kind.ok_or_else(|| ExchangeType::unknown(declare.kind))?;
        refuse_default(&name)?;
        let resource = self.exchange_resource(&name);
        self.require(at, Permission::Configure, resource)?;
        let alternate = alternate_exchange(&declare, resource)?;
        match self.topology.exchange_id(name.as_str()) {
            Some(id) => {
                self.check_same_exchange(id, &declare, kind)?;
                self.report_other_routing_type(id, &declare);
            }
            None => self.create_exchange(at, &name, declare, kind, alternate)?,
        }
        self.answer(at, declare.nowait, Outgoing::ExchangeDeclareOk);
        Ok(())
    }

    fn create_exchange(
        &mut self,
        at: ChannelKey,
        name: &str,
        declare: DeclareExchange<'_>,
        kind: ExchangeType,
        alternate: Option<Name>,
    ) -> Result<(), Refusal> {
        if name.starts_with("amq.") {
            return Err(Refusal::access_refused(format!(
                "exchange name '{name}' contains reserved prefix 'amq.*'"
            )));
        }
        if let Some(alternate) = &alternate {
            self.require(at, Permission::Read, self.exchange_resource(name))?;
            self.require(at, Permission::Write, self.exchange_resource(alternate))?;
        }
        let resource = self.exchange_resource(name);
        check_arguments(declare.arguments, resource)?;
        let said = name.len() + declare.arguments.as_bytes().len();
        self.check_growth(resource, EXCHANGE_MEMORY_BYTES + said as u64)?;
        let name: Name = name.into();
        let is_delayed = kind == ExchangeType::Delayed;
        let store = is_delayed.then(|| self.topology.next_queue_number());
        let memory = self.paging.for_queue();
        let mut exchange = Exchange::new(
            ExchangeDeclaration {
                name: Arc::clone(&name),
                kind,
                durable: declare.durable,
                auto_delete: declare.auto_delete,
                internal: declare.internal,
                arguments: declare.arguments.to_table(),
                alternate,
                declared_by: self.user(at),
                store: store.map(|number| HeldStore { number, memory }),
            },
            self.topology.seed(),
            self.topology.memory(),
        )?;
        self.apply_exchange_policy(&mut exchange);
        if exchange.durable {
            exchange.lsn = self.log(Record::DeclareExchange(exchange.record()));
        }
        self.topology.insert_exchange(exchange);
        self.topology_changed();
        Ok(())
    }

    /// Checks that a declaration of an existing exchange is the same as the first.
    fn check_same_exchange(
        &self,
        id: ExchangeId,
        declare: &DeclareExchange<'_>,
        kind: ExchangeType,
    ) -> Result<(), Refusal> {
        let current = self.topology.known_exchange(id);
        let resource = self.exchange_resource(&current.name);
        let quoted = |text: &str| format!("'{text}'");
        let differs = |property: &str, received: &str, current: &str| {
            if received == current {
                return Ok(());
            }
            Err(inequivalent(property, resource, &quoted(received), &quoted(current)))
        };
        let flag = |flag: bool| if flag { "true" } else { "false" };
        differs("type", kind.as_str(), current.kind.as_str())?;
        differs("durable", flag(declare.durable), flag(current.durable))?;
        differs("auto_delete", flag(declare.auto_delete), flag(current.auto_delete))?;
        differs("internal", flag(declare.internal), flag(current.internal))?;
        let of_type = (kind == ExchangeType::FederationUpstream).then_some(MAX_HOPS);
        for argument in of_type.into_iter().chain(["alternate-exchange"]) {
            let received = declare.arguments.get(argument);
            check_argument(argument, current.arguments.get(argument), received, resource)?;
        }
        Ok(())
    }

    /// Reports a declaration of a delayed exchange with another routing type than its own. As in the plugin of RabbitMQ,
    /// the type is not compared, and the first stays.
    fn report_other_routing_type(&mut self, id: ExchangeId, declare: &DeclareExchange<'_>) {
        let exchange = self.topology.known_exchange_mut(id);
        let argument = "x-delayed-type";
        if declare.arguments.get(argument) == exchange.arguments.get(argument) {
            return;
        }
        let Some(held) = &mut exchange.held else { return };
        if std::mem::replace(&mut held.has_reported_type, true) {
            return;
        }
        let event = Event::DelayedTypeIgnored {
            exchange: Arc::clone(&exchange.name),
            current: named_routing_type(exchange.arguments.as_ref()).into(),
            received: named_routing_type(declare.arguments).into(),
        };
        self.effects.event(event);
    }

    pub(in crate::vhost) fn delete_exchange(
        &mut self,
        at: ChannelKey,
        name: &str,
        if_unused: bool,
        nowait: bool,
    ) -> Result<(), Refusal> {
        let name = name.replace(['\r', '\n'], "");
        refuse_default(&name)?;
        if name.starts_with("amq.") {
            return Err(Refusal::access_refused(format!(
                "deletion of system {} not allowed",
                self.exchange_resource(&name)
            )));
        }
        self.require(at, Permission::Configure, self.exchange_resource(&name))?;
        if let Some(id) = self.topology.exchange_id(name.as_str()) {
            if if_unused && self.topology.known_exchange(id).is_bound() {
                let resource = self.exchange_resource(&name);
                return Err(Refusal::precondition_failed(format!("{resource} in use")));
            }
            self.remove_exchange(id);
        }
        self.answer(at, nowait, Outgoing::ExchangeDeleteOk);
        Ok(())
    }

    /// Removes an exchange with all bindings from and to it, and auto-delete exchanges that lose their last
    /// binding by that.
    pub(in crate::vhost) fn remove_exchange(&mut self, id: ExchangeId) {
        let mut over = vec![id];
        while let Some(id) = over.pop() {
            let Some(exchange) = self.topology.exchange_mut(id) else {
                // The exchange was bound to itself.
                continue;
            };
            // First of all, because the records name the destinations of the bindings.
            for (source, binding) in std::mem::take(&mut exchange.bound_from) {
                if self.remove_binding(source, &binding) {
                    over.push(source);
                }
            }
            let Some(mut exchange) = self.topology.remove_exchange(id) else {
                continue;
            };
            self.topology_changed();
            self.drop_held(id, &mut exchange);
            for binding in exchange.bindings() {
                self.log_unbound(&exchange.name, id, binding);
                self.topology.forget_binding(id, binding);
            }
            if exchange.durable {
                let record = Record::DeleteExchange { name: Arc::clone(&exchange.name) };
                self.log_about(exchange.lsn, record);
            }
        }
    }
}

/// Refuses to declare, delete or bind the default exchange.
pub(super) fn refuse_default(name: &str) -> Result<(), Refusal> {
    if name.is_empty() {
        let text = "operation not permitted on the default exchange";
        return Err(Refusal::access_refused(text));
    }
    Ok(())
}

fn alternate_exchange(
    declare: &DeclareExchange<'_>,
    exchange: Resource<'_>,
) -> Result<Option<Name>, Refusal> {
    match declare.arguments.get("alternate-exchange") {
        None => Ok(None),
        Some(Value::LongStr(name)) => Ok(Some(String::from_utf8_lossy(name).into())),
        Some(other) => Err(Refusal::precondition_failed(format!(
            "invalid type '{}' for arg 'alternate-exchange' in {exchange}",
            other.type_name()
        ))),
    }
}
