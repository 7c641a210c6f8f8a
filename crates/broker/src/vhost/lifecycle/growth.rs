//! Limits on the memory of queues, exchanges and bindings: the size of the arguments of each, and while the
//! node's memory alarm is on, the size of all of them together.
//!
//! COMPAT: topology under the memory alarm: a new queue, exchange or binding is refused with 406 while the
//! alarm is on and the vhost's topology takes more than its share; RabbitMQ takes it.

use amqp::table::TableRef;

use crate::limits::{ARGUMENTS_BYTES_MAX, CONSUMER_ARGUMENTS_BYTES_FREE};
use crate::refusal::{Refusal, Resource};
use crate::vhost::Vhost;

impl Vhost {
    /// Sets the limit on the memory of queues, exchanges and bindings together, in bytes; none while the node has
    /// enough memory.
    pub fn set_topology_bytes_max(&mut self, bytes_max: Option<u64>) {
        self.topology.set_memory_bytes_max(bytes_max);
    }

    /// Approximate memory of queues without their messages, exchanges and bindings, in bytes.
    pub fn topology_bytes(&self) -> u64 {
        self.topology.memory().bytes()
    }

    /// Checks that there is room for a new queue, exchange or binding of `bytes`.
    ///
    /// # Errors
    /// 406 while the memory alarm is on.
    pub(in crate::vhost) fn check_growth(
        &self,
        what: Resource<'_>,
        bytes: u64,
    ) -> Result<(), Refusal> {
        match self.topology.exceeded_by(bytes) {
            Some(max) => Err(Refusal::precondition_failed(format!(
                "memory alarm is on, and queues, exchanges and bindings of vhost '{}' take more \
                 than {max} bytes: nothing is added for {what}",
                self.name
            ))),
            None => Ok(()),
        }
    }

    /// Checks the arguments of a consumer. Small ones are free of the memory alarm, because consumers take messages
    /// out.
    pub(in crate::vhost) fn check_consumer_growth(
        &self,
        queue: Resource<'_>,
        arguments: TableRef<'_>,
    ) -> Result<(), Refusal> {
        check_arguments(arguments, queue)?;
        if arguments.as_bytes().len() > CONSUMER_ARGUMENTS_BYTES_FREE {
            return self.check_growth(queue, arguments.as_bytes().len() as u64);
        }
        Ok(())
    }
}

/// Refuses arguments above the size limit.
pub(in crate::vhost) fn check_arguments(
    arguments: TableRef<'_>,
    of: Resource<'_>,
) -> Result<(), Refusal> {
    let bytes = arguments.as_bytes().len();
    if bytes > ARGUMENTS_BYTES_MAX {
        return Err(Refusal::precondition_failed(format!(
            "arguments for {of} take {bytes} bytes, at most {ARGUMENTS_BYTES_MAX} are allowed"
        )));
    }
    Ok(())
}
