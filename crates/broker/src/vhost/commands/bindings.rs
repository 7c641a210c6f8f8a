//! Bindings of queues and exchanges: `queue.bind`, `queue.unbind`, `exchange.bind`, `exchange.unbind`.

use std::sync::Arc;

use super::exchanges::refuse_default;
use crate::access::Permission;
use crate::channel_key::ChannelKey;
use crate::command::Bind;
use crate::effect::Outgoing;
use crate::exchange::control::refuse_control;
use crate::exchange::{Binding, BindingArguments, Destination, ExchangeType};
use crate::ids::ExchangeId;
use crate::message::Name;
use crate::record::{BindingRecord, Record};
use crate::refusal::Refusal;
use crate::vhost::Vhost;
use crate::vhost::lifecycle::growth::check_arguments;

/// The kind of the destination of a binding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BindTo {
    Queue,
    Exchange,
}

impl Vhost {
    pub(in crate::vhost) fn bind_exchange(
        &mut self,
        at: ChannelKey,
        bind: Bind<'_>,
    ) -> Result<(), Refusal> {
        self.bind_or_unbind(at, bind, BindTo::Exchange, true)?;
        self.answer(at, bind.nowait, Outgoing::ExchangeBindOk);
        Ok(())
    }

    pub(in crate::vhost) fn unbind_exchange(
        &mut self,
        at: ChannelKey,
        bind: Bind<'_>,
    ) -> Result<(), Refusal> {
        self.bind_or_unbind(at, bind, BindTo::Exchange, false)?;
        self.answer(at, bind.nowait, Outgoing::ExchangeUnbindOk);
        Ok(())
    }

    pub(in crate::vhost) fn bind_queue(
        &mut self,
        at: ChannelKey,
        bind: Bind<'_>,
    ) -> Result<(), Refusal> {
        self.bind_or_unbind(at, bind, BindTo::Queue, true)?;
        self.answer(at, bind.nowait, Outgoing::QueueBindOk);
        Ok(())
    }

    pub(in crate::vhost) fn unbind_queue(
        &mut self,
        at: ChannelKey,
        bind: Bind<'_>,
    ) -> Result<(), Refusal> {
        self.bind_or_unbind(at, bind, BindTo::Queue, false)?;
        self.answer(at, bind.nowait, Outgoing::QueueUnbindOk);
        Ok(())
    }

    /// Binds or unbinds, after the same checks; removing a binding that does not exist is no error.
    fn bind_or_unbind(
        &mut self,
        at: ChannelKey,
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
        refuse_control(&source)?;
        self.require(at, Permission::Write, resource)?;
        self.require(at, Permission::Read, self.exchange_resource(&source))?;
        if to == BindTo::Queue && self.connections.replies_at(&destination).is_some() {
            let text = "cannot bind or unbind to a volatile (direct reply-to) queue";
            return Err(Refusal::access_refused(text));
        }
        let source_id = self.topology.exchange_id(&source);
        let destination_id = match to {
            BindTo::Queue => self.topology.queue_id(&destination).map(Destination::Queue),
            BindTo::Exchange => self.topology.exchange_id(&destination).map(Destination::Exchange),
        };
        let (source_id, destination_id) = match (source_id, destination_id) {
            (Some(source), Some(destination)) => (source, destination),
            _ if !add => return Ok(()),
            (None, _) => return Err(Refusal::not_found(self.exchange_resource(&source))),
            (Some(_), None) => return Err(Refusal::not_found(resource)),
        };
        let exchange = self.topology.known_exchange(source_id);
        if exchange.routing_type == ExchangeType::Topic
            && let Some(connection) = self.connections.get(at.connection)
        {
            let resource = self.exchange_resource(&source);
            connection.access.require_topic(Permission::Read, resource, &routing_key)?;
        }
        let arguments = BindingArguments::new(bind.arguments);
        let binding = Binding { destination: destination_id, routing_key, arguments };
        if add {
            let to_queue = match destination_id {
                Destination::Queue(id) => {
                    self.check_owner(at, id)?;
                    Some(self.topology.known_queue(id).kind())
                }
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
            self.unbind_own(at, source_id, &binding)?;
        }
        Ok(())
    }

    /// An empty queue name stands for the queue last declared on the channel; if the key is empty too, the
    /// queue name is also the key.
    fn queue_and_key(&mut self, at: ChannelKey, bind: Bind<'_>) -> Result<(String, Name), Refusal> {
        let queue = self.queue_name(at, bind.destination)?;
        let key = match (bind.destination, bind.routing_key) {
            ("", "") => queue.as_str().into(),
            (_, key) => key.into(),
        };
        Ok((queue, key))
    }

    fn bind(&mut self, source: ExchangeId, binding: &Binding) {
        if !self.topology.add_binding(source, binding) {
            return;
        }
        self.topology_changed();
        if let Some(record) = self.binding_record(source, binding) {
            let lsn = self.log(Record::Bind(record));
            self.topology.binding_logged(source, binding.clone(), lsn);
        }
    }

    /// Removes a binding. The queue may be another connection's only if the binding is not there.
    fn unbind_own(
        &mut self,
        at: ChannelKey,
        source: ExchangeId,
        binding: &Binding,
    ) -> Result<(), Refusal> {
        if !self.topology.known_exchange(source).has(binding) {
            return Ok(());
        }
        if let Destination::Queue(queue) = binding.destination {
            self.check_owner(at, queue)?;
        }
        self.unbind(source, binding);
        Ok(())
    }

    /// Removes a binding, and an auto-delete exchange with its last binding.
    pub(in crate::vhost) fn unbind(&mut self, source: ExchangeId, binding: &Binding) {
        if self.remove_binding(source, binding) {
            self.remove_exchange(source);
        }
    }

    /// Removes a binding; true if it was the last of an auto-delete exchange. The source may be gone.
    pub(in crate::vhost) fn remove_binding(
        &mut self,
        source: ExchangeId,
        binding: &Binding,
    ) -> bool {
        if !self.topology.remove_binding(source, binding) {
            return false;
        }
        let exchange = self.topology.known_exchange(source);
        let is_over = exchange.auto_delete && !exchange.is_bound();
        let name = Arc::clone(&exchange.name);
        self.log_unbound(&name, source, binding);
        self.topology_changed();
        is_over
    }

    /// The record of a binding; none if one of its ends does not survive a restart.
    fn binding_record(&self, source: ExchangeId, binding: &Binding) -> Option<BindingRecord> {
        let source = self.topology.known_exchange(source);
        let (is_durable, destination) = match binding.destination {
            Destination::Queue(queue) => {
                let queue = self.topology.known_queue(queue);
                (queue.ownership.durable, &queue.name)
            }
            Destination::Exchange(exchange) => {
                let exchange = self.topology.known_exchange(exchange);
                (exchange.durable, &exchange.name)
            }
        };
        (source.durable && is_durable).then(|| record(&source.name, destination, binding))
    }

    /// Logs the removal of a binding. Its source may be gone already, as with an exchange bound to itself.
    pub(in crate::vhost) fn log_unbound(
        &mut self,
        source_name: &Name,
        source: ExchangeId,
        binding: &Binding,
    ) {
        let Some(lsn) = self.topology.take_binding_lsn(source, binding) else {
            return;
        };
        let destination = match binding.destination {
            Destination::Queue(queue) => self.topology.queue(queue).map(|queue| &queue.name),
            Destination::Exchange(exchange) => {
                self.topology.exchange(exchange).map(|exchange| &exchange.name)
            }
        };
        let record = record(source_name, destination.unwrap_or(source_name), binding);
        self.log_about(lsn, Record::Unbind(record));
    }
}

/// The record of a binding between a source and a destination with these names.
pub(in crate::vhost) fn record(
    source: &Name,
    destination: &Name,
    binding: &Binding,
) -> BindingRecord {
    BindingRecord {
        source: Arc::clone(source),
        to_queue: matches!(binding.destination, Destination::Queue(_)),
        destination: Arc::clone(destination),
        routing_key: Arc::clone(&binding.routing_key),
        arguments: binding.arguments.table().to_table(),
    }
}
