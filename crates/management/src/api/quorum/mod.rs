//! `/api/queues/quorum`: quorum queues as RabbitMQ has them, whose members are the replicas of their vhost.

pub(crate) mod replicas;
pub(crate) mod status;
