//! Class exchange, and the bindings of exchanges and queues (spec 6.6).

use std::sync::Arc;

use amqp::table::{Table, Value};

use crate::access::INTERNAL_USER;
use crate::access::Permission;
use crate::command::{Bind, DeclareExchange};
use crate::effect::Outgoing;
use crate::exchange::{
    Binding, BindingArguments, Destination, Exchange, ExchangeDeclaration, ExchangeType,
};
use crate::ids::ExchangeId;
use crate::limits::EXCHANGE_MEMORY_BYTES;
use crate::message::Name;
use crate::queue::Queue;
use crate::queue::arguments::{check_argument, inequivalent};
use crate::record::{BindingRecord, ExchangeRecord, Record};
use crate::refusal::{Refusal, Resource};
use crate::route::At;
use crate::vhost::Vhost;
use crate::vhost::lifecycle::firehose::TRACE_EXCHANGE;
use crate::vhost::lifecycle::growth::check_arguments;

/// The exchanges that every vhost has (AMQP 0-9-1 section 3.1.3).
const PREDECLARED: [(&str, ExchangeType, bool); 7] = [
    ("", ExchangeType::Direct, false),
    ("amq.direct", ExchangeType::Direct, false),
    ("amq.fanout", ExchangeType::Fanout, false),
    ("amq.headers", ExchangeType::Headers, false),
    ("amq.match", ExchangeType::Headers, false),
    (TRACE_EXCHANGE, ExchangeType::Topic, true),
    ("amq.topic", ExchangeType::Topic, false),
];

/// Where RabbitMQ can send its log, which the vhost `/` has, too. Nothing is sent there.
const LOG_EXCHANGE: (&str, ExchangeType, bool) = ("amq.rabbitmq.log", ExchangeType::Topic, true);

/// Which end of a binding is a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BindTo {
    Queue,
    Exchange,
}

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
            };
            // Only types with arguments of their own can refuse them.
            if let Ok(exchange) = Exchange::new(declaration, self.seed, &self.topology_memory) {
                let id = self.exchanges.insert(exchange);
                self.exchange_names.insert(name.into(), id);
                if name.is_empty() {
                    self.default_exchange = id;
                }
            }
        }
    }

    /// The exchange of that name.
    ///
    /// # Errors
    /// 404 if there is none.
    pub(in crate::vhost) fn find_exchange(&self, name: &str) -> Result<ExchangeId, Refusal> {
        let id = self.exchange_names.get(name).copied();
        id.ok_or_else(|| Refusal::not_found(self.exchange_resource(name)))
    }

    pub(in crate::vhost) fn declare_exchange(
        &mut self,
        at: At,
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
        let kind = kind.ok_or_else(|| {
            // RabbitMQ calls a word that Erlang knows invalid, and any other unknown.
            let problem = if declare.kind.is_empty() { "invalid" } else { "unknown" };
            Refusal::precondition_failed(format!("{problem} exchange type '{}'", declare.kind))
        })?;
        refuse_default(&name)?;
        let resource = self.exchange_resource(&name);
        self.require(at, Permission::Configure, resource)?;
        let alternate = alternate_exchange(&declare, resource)?;
        match self.exchange_names.get(name.as_str()).copied() {
            Some(id) => self.check_same_exchange(id, &declare, kind)?,
            None => self.create_exchange(at, &name, declare, kind, alternate)?,
        }
        self.answer(at, declare.nowait, Outgoing::ExchangeDeclareOk);
        Ok(())
    }

    fn create_exchange(
        &mut self,
        at: At,
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
            },
            self.seed,
            &self.topology_memory,
        )?;
        self.apply_exchange_policy(&mut exchange);
        if exchange.durable {
            exchange.lsn = self.log(Record::DeclareExchange(ExchangeRecord {
                name: Arc::clone(&name),
                kind,
                auto_delete: exchange.auto_delete,
                internal: exchange.internal,
                arguments: exchange.arguments.clone(),
                declared_by: Arc::clone(&exchange.declared_by),
            }));
        }
        let id = self.exchanges.insert(exchange);
        self.exchange_names.insert(name, id);
        self.topology_changed();
        Ok(())
    }

    /// An exchange that exists may be declared again, but only the same.
    fn check_same_exchange(
        &self,
        id: ExchangeId,
        declare: &DeclareExchange<'_>,
        kind: ExchangeType,
    ) -> Result<(), Refusal> {
        let Some(current) = self.exchanges.get(id) else {
            return Ok(());
        };
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
        let argument = "alternate-exchange";
        let received = declare.arguments.get(argument);
        check_argument(argument, current.arguments.get(argument), received, resource)
    }

    pub(in crate::vhost) fn delete_exchange(
        &mut self,
        at: At,
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
        if let Some(id) = self.exchange_names.get(name.as_str()).copied() {
            if if_unused && self.exchanges.get(id).is_some_and(Exchange::is_bound) {
                let resource = self.exchange_resource(&name);
                return Err(Refusal::precondition_failed(format!("{resource} in use")));
            }
            self.remove_exchange(id);
        }
        self.answer(at, nowait, Outgoing::ExchangeDeleteOk);
        Ok(())
    }

    /// Removes an exchange with all bindings from and to it, and the auto-delete exchanges that lose
    /// their last binding with it.
    fn remove_exchange(&mut self, id: ExchangeId) {
        let mut over = vec![id];
        while let Some(id) = over.pop() {
            let Some(exchange) = self.exchanges.get_mut(id) else {
                continue;
            };
            // First of all: the log says by name what the bindings led to.
            for (source, binding) in std::mem::take(&mut exchange.bound_from) {
                if self.remove_binding(source, &binding) {
                    over.push(source);
                }
            }
            let Some(exchange) = self.exchanges.remove(id) else {
                continue;
            };
            self.exchange_names.remove(&*exchange.name);
            self.topology_changed();
            for binding in exchange.bindings() {
                self.log_unbound(&exchange.name, id, binding);
                self.forget_binding(id, binding);
            }
            if exchange.durable {
                let record = Record::DeleteExchange { name: Arc::clone(&exchange.name) };
                self.log_about(exchange.lsn, record);
            }
        }
    }

    pub(in crate::vhost) fn bind_exchange(
        &mut self,
        at: At,
        bind: Bind<'_>,
    ) -> Result<(), Refusal> {
        self.bind_or_unbind(at, bind, BindTo::Exchange, true)?;
        self.answer(at, bind.nowait, Outgoing::ExchangeBindOk);
        Ok(())
    }

    pub(in crate::vhost) fn unbind_exchange(
        &mut self,
        at: At,
        bind: Bind<'_>,
    ) -> Result<(), Refusal> {
        self.bind_or_unbind(at, bind, BindTo::Exchange, false)?;
        self.answer(at, bind.nowait, Outgoing::ExchangeUnbindOk);
        Ok(())
    }

    pub(in crate::vhost) fn bind_queue(&mut self, at: At, bind: Bind<'_>) -> Result<(), Refusal> {
        self.bind_or_unbind(at, bind, BindTo::Queue, true)?;
        self.answer(at, bind.nowait, Outgoing::QueueBindOk);
        Ok(())
    }

    pub(in crate::vhost) fn unbind_queue(&mut self, at: At, bind: Bind<'_>) -> Result<(), Refusal> {
        self.bind_or_unbind(at, bind, BindTo::Queue, false)?;
        self.answer(at, bind.nowait, Outgoing::QueueUnbindOk);
        Ok(())
    }

    /// Binding and unbinding ask the same questions; unbinding what is not there is no error.
    fn bind_or_unbind(
        &mut self,
        at: At,
        bind: Bind<'_>,
        to: BindTo,
        add: bool,
    ) -> Result<(), Refusal> {
        let source = bind.source.replace(['\r', '\n'], "");
        let (destination, routing_key) = match to {
            BindTo::Queue => self.queue_and_key(at, bind)?,
            BindTo::Exchange => {
                (bind.destination.replace(['\r', '\n'], ""), bind.routing_key.into())
            }
        };
        let resource = match to {
            BindTo::Queue => self.queue_resource(&destination),
            BindTo::Exchange => self.exchange_resource(&destination),
        };
        if to == BindTo::Exchange {
            refuse_default(&destination)?;
        }
        refuse_default(&source)?;
        self.require(at, Permission::Write, resource)?;
        self.require(at, Permission::Read, self.exchange_resource(&source))?;
        if to == BindTo::Queue && self.reply_addresses.contains_key(destination.as_str()) {
            let text = "cannot bind or unbind to a volatile (direct reply-to) queue";
            return Err(Refusal::access_refused(text));
        }
        let source_id = self.exchange_names.get(source.as_str()).copied();
        let destination_id = match to {
            BindTo::Queue => {
                self.queue_names.get(destination.as_str()).copied().map(Destination::Queue)
            }
            BindTo::Exchange => {
                self.exchange_names.get(destination.as_str()).copied().map(Destination::Exchange)
            }
        };
        let (source_id, destination_id) = match (source_id, destination_id) {
            (Some(source), Some(destination)) => (source, destination),
            _ if !add => return Ok(()),
            (None, _) => return Err(Refusal::not_found(self.exchange_resource(&source))),
            (Some(_), None) => return Err(Refusal::not_found(resource)),
        };
        if let Destination::Queue(queue) = destination_id {
            self.check_owner(at, queue)?;
        }
        let Some(exchange) = self.exchanges.get(source_id) else {
            return Ok(());
        };
        if exchange.kind == ExchangeType::Topic
            && let Some(connection) = self.connections.get(at.connection)
        {
            let resource = self.exchange_resource(&source);
            connection.access.require_topic(Permission::Read, resource, &routing_key)?;
        }
        let arguments = BindingArguments::new(bind.arguments);
        let binding = Binding { destination: destination_id, routing_key, arguments };
        if add {
            let to_queue = match destination_id {
                Destination::Queue(id) => self.queue_of(id).map(Queue::kind),
                Destination::Exchange(_) => None,
            };
            exchange.check_binding(&binding.routing_key, bind.arguments, to_queue)?;
            let resource = self.exchange_resource(&source);
            if !exchange.has(&binding) {
                check_arguments(bind.arguments, resource)?;
                self.check_growth(resource, binding.memory_bytes())?;
            }
            self.bind(source_id, &binding);
        } else {
            self.unbind(source_id, &binding);
        }
        Ok(())
    }

    /// An empty queue name stands for the queue last declared on the channel; with an empty key it
    /// stands for the key, too.
    fn queue_and_key(&mut self, at: At, bind: Bind<'_>) -> Result<(String, Name), Refusal> {
        let queue = self.queue_name(at, bind.destination)?;
        let key = match (bind.destination, bind.routing_key) {
            ("", "") => queue.as_str().into(),
            (_, key) => key.into(),
        };
        Ok((queue, key))
    }

    fn bind(&mut self, source: ExchangeId, binding: &Binding) {
        if !self.add_binding(source, binding) {
            return;
        }
        self.topology_changed();
        if let Some(record) = self.binding_record(source, binding) {
            let lsn = self.log(Record::Bind(record));
            self.durable_bindings.insert((source, binding.clone()), lsn);
        }
    }

    /// Both ends know of the binding; false if they did before.
    pub(in crate::vhost) fn add_binding(&mut self, source: ExchangeId, binding: &Binding) -> bool {
        let Some(exchange) = self.exchanges.get_mut(source) else {
            return false;
        };
        if !exchange.bind(binding.clone()) {
            return false;
        }
        match binding.destination {
            Destination::Queue(queue) => {
                if let Some(queue) = self.queues.get_mut(queue) {
                    queue.registration.bindings.insert((source, binding.clone()));
                }
            }
            Destination::Exchange(exchange) => {
                if let Some(exchange) = self.exchanges.get_mut(exchange) {
                    exchange.bound_from.insert((source, binding.clone()));
                }
            }
        }
        true
    }

    /// Neither end knows of the binding any more.
    pub(in crate::vhost) fn take_binding(&mut self, source: ExchangeId, binding: &Binding) {
        if let Some(exchange) = self.exchanges.get_mut(source) {
            exchange.unbind(binding);
        }
        self.forget_binding(source, binding);
    }

    /// Removes a binding, and an auto-delete exchange with its last one.
    pub(in crate::vhost) fn unbind(&mut self, source: ExchangeId, binding: &Binding) {
        if self.remove_binding(source, binding) {
            self.remove_exchange(source);
        }
    }

    /// Removes a binding; true if that was the last of an auto-delete exchange.
    fn remove_binding(&mut self, source: ExchangeId, binding: &Binding) -> bool {
        let Some(exchange) = self.exchanges.get_mut(source) else {
            return false;
        };
        if !exchange.unbind(binding) {
            return false;
        }
        let is_over = exchange.auto_delete && !exchange.is_bound();
        let name = Arc::clone(&exchange.name);
        self.log_unbound(&name, source, binding);
        self.forget_binding(source, binding);
        self.topology_changed();
        is_over
    }

    /// The destination no longer knows of the binding.
    fn forget_binding(&mut self, source: ExchangeId, binding: &Binding) {
        let known = (source, binding.clone());
        match binding.destination {
            Destination::Queue(queue) => {
                if let Some(queue) = self.queues.get_mut(queue) {
                    queue.registration.bindings.remove(&known);
                }
            }
            Destination::Exchange(exchange) => {
                if let Some(exchange) = self.exchanges.get_mut(exchange) {
                    exchange.bound_from.remove(&known);
                }
            }
        }
    }

    /// The binding for the log; none if one of its ends does not survive a restart anyway.
    fn binding_record(&self, source: ExchangeId, binding: &Binding) -> Option<BindingRecord> {
        let source = self.exchanges.get(source).filter(|e| e.durable)?;
        let (is_durable, destination) = match binding.destination {
            Destination::Queue(queue) => {
                self.queues.get(queue).map(|queue| (queue.ownership.durable, &queue.name))?
            }
            Destination::Exchange(exchange) => {
                self.exchanges.get(exchange).map(|exchange| (exchange.durable, &exchange.name))?
            }
        };
        is_durable.then(|| record(&source.name, destination, binding))
    }

    /// A binding is gone, and with it the record of it. The source may be gone already.
    fn log_unbound(&mut self, source_name: &Name, source: ExchangeId, binding: &Binding) {
        let Some(lsn) = self.durable_bindings.remove(&(source, binding.clone())) else {
            return;
        };
        let destination = match binding.destination {
            Destination::Queue(queue) => self.queues.get(queue).map(|queue| &queue.name),
            Destination::Exchange(exchange) => {
                self.exchanges.get(exchange).map(|exchange| &exchange.name)
            }
        };
        let record = record(source_name, destination.unwrap_or(source_name), binding);
        self.log_about(lsn, Record::Unbind(record));
    }
}

fn record(source: &Name, destination: &Name, binding: &Binding) -> BindingRecord {
    BindingRecord {
        source: Arc::clone(source),
        to_queue: matches!(binding.destination, Destination::Queue(_)),
        destination: Arc::clone(destination),
        routing_key: Arc::clone(&binding.routing_key),
        arguments: binding.arguments.table().to_table(),
    }
}

/// The default exchange can be neither declared nor deleted nor bound.
fn refuse_default(name: &str) -> Result<(), Refusal> {
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
