//! Class queue: `queue.declare`, and the look-up of queues by name.

use std::sync::Arc;

use amqp::table::Table;

use crate::access::Permission;
use crate::channel_key::ChannelKey;
use crate::command::DeclareQueue;
use crate::effect::Outgoing;
use crate::generated_names;
use crate::ids::QueueId;
use crate::message::Name;
use crate::publish_properties::DIRECT_REPLY_TO;
use crate::queue::arguments::{self, check_equivalence, inequivalent};
use crate::queue::{Queue, QueueArguments, QueueDeclaration, QueueType};
use crate::record::Record;
use crate::refusal::{Refusal, Resource};
use crate::vhost::Vhost;
use crate::vhost::lifecycle::growth::check_arguments;

impl Vhost {
    /// The name of the queue that a command is about: an empty one stands for the queue last declared on the
    /// channel.
    ///
    /// # Errors
    /// 404 if it is empty and nothing was declared.
    pub(in crate::vhost) fn queue_name(
        &mut self,
        at: ChannelKey,
        name: &str,
    ) -> Result<String, Refusal> {
        if !name.is_empty() {
            return Ok(name.replace(['\r', '\n'], ""));
        }
        let last = self.connections.channel_mut(at).and_then(|channel| channel.last_queue.clone());
        last.map(|name| name.to_string()).ok_or_else(|| {
            let code = amqp::reply_code::ReplyCode::NotFound;
            Refusal::new(code, "no previously declared queue")
        })
    }

    /// The queue of that name, if the connection may use it.
    ///
    /// # Errors
    /// 404 if there is none, 405 if it is exclusive to another connection.
    pub(in crate::vhost) fn find_queue(
        &self,
        at: ChannelKey,
        name: &str,
    ) -> Result<QueueId, Refusal> {
        let Some(id) = self.topology.queue_id(name) else {
            return Err(Refusal::not_found(self.queue_resource(name)));
        };
        self.check_owner(at, id)?;
        Ok(id)
    }

    /// Refuses an exclusive queue to other connections than its own.
    pub(in crate::vhost) fn check_owner(&self, at: ChannelKey, id: QueueId) -> Result<(), Refusal> {
        let queue = self.topology.known_queue(id);
        match queue.ownership.exclusive_owner {
            Some(owner) if owner != at.connection => {
                Err(Refusal::locked_queue(self.queue_resource(&queue.name)))
            }
            _ => Ok(()),
        }
    }

    pub(in crate::vhost) fn declare_queue(
        &mut self,
        at: ChannelKey,
        declare: DeclareQueue<'_>,
    ) -> Result<(), Refusal> {
        let name = declare.queue.replace(['\r', '\n'], "");
        if name.starts_with(DIRECT_REPLY_TO) {
            return self.declare_reply_queue(at, &name, declare.nowait);
        }
        if declare.exclusive && self.connections.get(at.connection).is_none() {
            return Ok(());
        }
        let id = if declare.passive {
            self.require_any(at, self.queue_resource(&name))?;
            self.find_queue(at, &name)?
        } else {
            self.declare_queue_actively(at, &name, declare)?
        };
        self.declared(at, id, declare.nowait);
        Ok(())
    }

    fn declare_queue_actively(
        &mut self,
        at: ChannelKey,
        name: &str,
        declare: DeclareQueue<'_>,
    ) -> Result<QueueId, Refusal> {
        let server_named = name.is_empty();
        let name: Name = if server_named {
            generated_names::generate("amq.gen-", &mut self.random)
        } else {
            name.into()
        };
        if !server_named && name.starts_with("amq.") {
            return Err(Refusal::access_refused(format!(
                "queue name '{name}' contains reserved prefix 'amq.*'"
            )));
        }
        self.require(at, Permission::Configure, self.queue_resource(&name))?;
        let typed = self.with_default_type(&declare);
        let arguments = typed.as_ref().map_or(declare.arguments, Table::as_ref);
        let declare = DeclareQueue { arguments, ..declare };
        if let Some(id) = self.topology.queue_id(&name) {
            self.check_same_queue(at, id, &declare)?;
            self.counters.queues_declared += 1;
            return Ok(id);
        }
        self.check_queues_max(&name)?;
        let arguments = self.new_queue_arguments(at, &name, &declare, server_named)?;
        let arguments = self.topology.shared_arguments(arguments);
        let exclusive_owner = declare.exclusive.then_some(at.connection);
        self.counters.queues_declared += 1;
        Ok(self.create_queue(QueueDeclaration {
            name,
            // An exclusive queue ends with its connection.
            durable: declare.durable && !declare.exclusive,
            auto_delete: declare.auto_delete,
            exclusive_owner,
            arguments,
            declared_by: self.user(at),
        }))
    }

    /// The arguments with the vhost's default type, if the client leaves the type open and the queue may have
    /// that type. Transient queues are classic.
    fn with_default_type(&self, declare: &DeclareQueue<'_>) -> Option<Table> {
        let default = self.options.default_queue_type;
        let lasts = declare.durable && !declare.exclusive && !declare.auto_delete;
        let fits = default.may_be_transient() || lasts;
        (fits && default != QueueType::default() && arguments::leaves_type_open(declare.arguments))
            .then(|| arguments::with_queue_type(declare.arguments, default))
    }

    /// Checks that one more queue may be declared.
    ///
    /// # Errors
    /// 406 with RabbitMQ's text.
    fn check_queues_max(&self, name: &str) -> Result<(), Refusal> {
        match self.options.queues_max {
            Some(max) if self.topology.queue_count() as u64 >= max => {
                Err(Refusal::precondition_failed(format!(
                    "cannot declare queue '{name}': queue limit in vhost '{}' ({max}) is reached",
                    self.name
                )))
            }
            _ => Ok(()),
        }
    }

    /// Checks the declaration of a new queue, in RabbitMQ's order.
    fn new_queue_arguments(
        &self,
        at: ChannelKey,
        name: &str,
        declare: &DeclareQueue<'_>,
        server_named: bool,
    ) -> Result<QueueArguments, Refusal> {
        let resource = self.queue_resource(name);
        check_arguments(declare.arguments, resource)?;
        self.check_growth(resource, Queue::memory_bytes_of(name, declare.arguments))?;
        if let Some(exchange) = arguments::dead_letter_exchange(declare.arguments, resource)? {
            self.require(at, Permission::Read, resource)?;
            self.require(at, Permission::Write, self.exchange_resource(&exchange))?;
        }
        let arguments = QueueArguments::parse(declare.arguments, resource)?;
        let queue_type = arguments.queue_type;
        if queue_type.may_be_transient() {
            return Ok(arguments);
        }
        if server_named {
            return Err(Refusal::precondition_failed(format!(
                "Cannot declare a server-named queue for type {}",
                queue_type.module()
            )));
        }
        let refused = [
            ("auto-delete", declare.auto_delete),
            ("exclusive-owner", declare.exclusive),
            ("non-durable", !declare.durable),
        ];
        match refused.iter().find(|(_, is_set)| *is_set) {
            Some((property, _)) => Err(Refusal::precondition_failed(format!(
                "invalid property '{property}' for {resource}"
            ))),
            None => Ok(arguments),
        }
    }

    /// A queue that exists may be declared again, but only with the same properties and arguments.
    fn check_same_queue(
        &self,
        at: ChannelKey,
        id: QueueId,
        declare: &DeclareQueue<'_>,
    ) -> Result<(), Refusal> {
        let queue = self.topology.known_queue(id);
        let resource = self.queue_resource(&queue.name);
        if queue.ownership.exclusive_owner != declare.exclusive.then_some(at.connection) {
            return Err(Refusal::locked_queue(resource));
        }
        let durable = declare.durable && !declare.exclusive;
        same_flag("durable", durable, queue.ownership.durable, resource)?;
        same_flag("auto_delete", declare.auto_delete, queue.ownership.auto_delete, resource)?;
        check_equivalence(queue.arguments.table.as_ref(), declare.arguments, resource)
    }

    fn create_queue(&mut self, declaration: QueueDeclaration) -> QueueId {
        let name = Arc::clone(&declaration.name);
        let number = self.topology.next_queue_number();
        let policies = self.policies.policies().for_queue(&name, declaration.arguments.queue_type);
        let defaults = self.options.queue_defaults;
        let mut queue = Queue::new(
            declaration,
            number,
            policies,
            defaults,
            self.paging.for_queue(),
            self.now.time,
        );
        if queue.ownership.durable {
            queue.registration.lsn = self.log(Record::DeclareQueue(queue.record()));
        }
        let owner = queue.ownership.exclusive_owner;
        let id = self.topology.insert_queue(queue);
        if let Some(owner) = owner.and_then(|owner| self.connections.get_mut(owner)) {
            owner.exclusive_queues.insert(id);
        }
        self.counters.queues_created += 1;
        self.topology_changed();
        self.arm_queue(id);
        id
    }

    /// Answers a declaration, which counts as use of the queue.
    ///
    /// COMPAT: queue lease: declaring a quorum queue again renews its lease, too.
    fn declared(&mut self, at: ChannelKey, id: QueueId, nowait: bool) {
        let now = self.now.time;
        self.expire_due(id);
        self.finish_deaths();
        let queue = self.topology.known_queue_mut(id);
        let name = Arc::clone(&queue.name);
        let outgoing = Outgoing::QueueDeclareOk {
            queue: Arc::clone(&name),
            message_count: count(queue.ready_count()),
            consumer_count: queue.consumer_count(),
        };
        if !nowait {
            queue.renew_lease(now);
            self.arm_queue(id);
        }
        if let Some(channel) = self.connections.channel_mut(at) {
            channel.last_queue = Some(name);
        }
        self.answer(at, nowait, outgoing);
    }

    /// Checks the permission for a passive declaration: any of the three will do.
    pub(in crate::vhost) fn require_any(
        &self,
        at: ChannelKey,
        resource: Resource<'_>,
    ) -> Result<(), Refusal> {
        let any = [Permission::Read, Permission::Write];
        if any.into_iter().any(|permission| self.require(at, permission, resource).is_ok()) {
            return Ok(());
        }
        self.require(at, Permission::Configure, resource)
    }

    /// Answers the declaration of the pseudo-queue of direct replies, or of the address of a connected
    /// requester.
    fn declare_reply_queue(
        &mut self,
        at: ChannelKey,
        name: &str,
        nowait: bool,
    ) -> Result<(), Refusal> {
        if name != DIRECT_REPLY_TO && self.connections.replies_at(name).is_none() {
            return Err(Refusal::not_found(self.queue_resource(name)));
        }
        let queue: Name = name.into();
        if let Some(channel) = self.connections.channel_mut(at) {
            channel.last_queue = Some(Arc::clone(&queue));
        }
        let outgoing = Outgoing::QueueDeclareOk { queue, message_count: 0, consumer_count: 1 };
        self.answer(at, nowait, outgoing);
        Ok(())
    }
}

fn same_flag(
    name: &str,
    received: bool,
    current: bool,
    resource: Resource<'_>,
) -> Result<(), Refusal> {
    if received == current {
        return Ok(());
    }
    let quoted = |flag: bool| if flag { "'true'" } else { "'false'" };
    Err(inequivalent(name, resource, quoted(received), quoted(current)))
}

/// A count as AMQP has it, 32 bits wide: more is shown as the highest number.
pub(in crate::vhost) fn count(messages: u64) -> u32 {
    u32::try_from(messages).unwrap_or(u32::MAX)
}
