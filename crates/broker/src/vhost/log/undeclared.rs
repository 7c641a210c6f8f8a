//! Queues with messages whose declaration is lost, because its record in the log is damaged.
//!
//! Messages of an undeclared queue are kept while the log is read. If the log says that the queue was deleted, its
//! declaration was only left out. Messages that are left at the end are restored in a queue without arguments,
//! under its old name where that is certain, and the queue is declared again for the next start. Messages do not
//! expire by their own `expiration` there: the dead-letter exchange they would go to is lost.

use std::collections::BTreeMap;
use std::sync::Arc;

use amqp::table::Table;

use crate::access::INTERNAL_USER;
use crate::ids::{Lsn, QueueId, QueueNumber};
use crate::message::{Message, Name};
use crate::policy::EffectivePolicies;
use crate::queue::{Queue, QueueArguments, QueueDeclaration};
use crate::record::{QueueRecord, Record};
use crate::vhost::Vhost;

/// A queue without messages and declaration.
type EmptyQueue = (QueueNumber, QueueId);

/// A queue with messages whose declaration is lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecoveredQueue {
    /// Number of the queue in the log.
    pub number: QueueNumber,
    /// Present name of the queue.
    pub name: Name,
    /// True if `name` is certain to be the original name.
    pub is_original_name: bool,
    /// Messages in the queue.
    pub messages: u64,
}

/// The name of an undeclared queue, as far as its messages show it.
#[derive(Debug)]
enum KnownName {
    Nothing,
    One(Name),
    /// The messages contradict each other.
    Several,
}

/// A queue with messages and without a declaration.
#[derive(Debug)]
struct Undeclared {
    id: QueueId,
    name: KnownName,
}

/// All undeclared queues, while a log is read.
#[derive(Default, Debug)]
pub(in crate::vhost) struct UndeclaredQueues(BTreeMap<QueueNumber, Undeclared>);

impl UndeclaredQueues {
    /// Adds an undeclared queue of that number.
    pub(in crate::vhost) fn make(&mut self, vhost: &mut Vhost, number: QueueNumber) -> QueueId {
        let name: Name = format!("recovered.{number}").into();
        let declaration = QueueDeclaration {
            name,
            durable: true,
            auto_delete: false,
            exclusive_owner: None,
            arguments: vhost.topology.shared_arguments(QueueArguments::default()),
            declared_by: INTERNAL_USER.into(),
        };
        let (defaults, paging, now) =
            (vhost.options.queue_defaults, vhost.paging.for_queue(), vhost.now.time);
        let queue =
            Queue::new(declaration, number, EffectivePolicies::default(), defaults, paging, now);
        let id = vhost.topology.insert_unnamed_queue(queue);
        self.0.insert(number, Undeclared { id, name: KnownName::Nothing });
        id
    }

    /// Takes note of a message that enters the queue of that number, alone or with others. Returns the message as
    /// an undeclared queue keeps it; none if the queue is declared.
    pub(in crate::vhost) fn enter(
        &mut self,
        number: QueueNumber,
        message: &Message,
        is_alone: bool,
    ) -> Option<Message> {
        let undeclared = self.0.get_mut(&number)?;
        undeclared.learn(message, is_alone);
        Some(message.without_expiration())
    }

    /// Removes a queue that is declared, or was deleted.
    pub(in crate::vhost) fn remove(&mut self, number: QueueNumber) -> Option<QueueId> {
        self.0.remove(&number).map(|undeclared| undeclared.id)
    }

    /// Forgets all of them. Returns those without messages, which are to be removed, and the number of one with messages,
    /// with their count.
    pub(in crate::vhost) fn take_all(
        &mut self,
        vhost: &Vhost,
    ) -> (Vec<EmptyQueue>, Option<(QueueNumber, u64)>) {
        let mut empty = Vec::new();
        let mut holding = None;
        for (number, Undeclared { id, .. }) in std::mem::take(&mut self.0) {
            match vhost.topology.known_queue(id).message_count() {
                0 => empty.push((number, id)),
                messages => holding = Some((number, messages)),
            }
        }
        (empty, holding)
    }

    /// Names the queues that hold messages and removes the others, which were deleted. `missing` are the names of
    /// queues that bindings lead to and that do not exist.
    pub(in crate::vhost) fn recover(
        self,
        vhost: &mut Vhost,
        missing: &[Name],
    ) -> Vec<RecoveredQueue> {
        let mut holding = Vec::new();
        for (number, undeclared) in self.0 {
            let messages = vhost.topology.known_queue(undeclared.id).message_count();
            if messages == 0 {
                vhost.topology.remove_queue(undeclared.id);
            } else {
                holding.push((number, undeclared, messages));
            }
        }
        let is_only = holding.len() == 1;
        let mut recovered = Vec::new();
        for (number, Undeclared { id, name }, messages) in holding {
            let known = match (name, missing) {
                (KnownName::One(name), _) => Some(name),
                (KnownName::Nothing, [name]) if is_only => Some(Arc::clone(name)),
                (KnownName::Nothing | KnownName::Several, _) => None,
            };
            let known = known.filter(|name| vhost.topology.queue_id(name).is_none());
            let is_original_name = known.is_some();
            let name = known.unwrap_or_else(|| vhost.free_name(number));
            vhost.topology.name_queue(id, Arc::clone(&name));
            recovered.push(RecoveredQueue { number, name, is_original_name, messages });
        }
        recovered
    }
}

impl Undeclared {
    /// Derives the name from a message: the default exchange routes to the queue whose name is the key.
    fn learn(&mut self, message: &Message, is_alone: bool) {
        let envelope = message.envelope();
        if !is_alone || !envelope.exchange.is_empty() || !envelope.has_one_key() {
            return;
        }
        let Some(key) = envelope.routing_key.as_str().filter(|key| !key.is_empty()) else { return };
        self.name = match std::mem::replace(&mut self.name, KnownName::Several) {
            KnownName::Nothing => KnownName::One(key.into()),
            KnownName::One(name) if &*name == key => KnownName::One(name),
            KnownName::One(_) | KnownName::Several => KnownName::Several,
        };
    }
}

impl Vhost {
    /// A free name for a recovered queue.
    fn free_name(&self, number: QueueNumber) -> Name {
        let mut name = format!("recovered.{number}");
        let mut others = 0;
        while self.topology.queue_id(&name).is_some() {
            others += 1;
            name = format!("recovered.{number}.{others}");
        }
        name.into()
    }

    /// Declares a recovered queue in the log, for the next start.
    pub(in crate::vhost) fn declare_recovered(&mut self, recovered: &RecoveredQueue) -> Lsn {
        self.log(Record::DeclareQueue(QueueRecord {
            queue: recovered.number,
            name: Arc::clone(&recovered.name),
            auto_delete: false,
            arguments: Table::default(),
            declared_by: INTERNAL_USER.into(),
        }))
    }
}
