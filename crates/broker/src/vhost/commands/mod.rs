//! The commands of clients, in files by AMQP's classes.

mod bindings;
mod channels;
mod consume;
mod exchanges;
mod get;
mod publish;
mod queues;
mod settle;
mod transaction;
