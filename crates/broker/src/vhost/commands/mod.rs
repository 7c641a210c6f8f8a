//! The commands of clients, in files by AMQP's classes.

mod channels;
mod consume;
mod exchanges;
mod publish;
mod queues;
mod settle;
mod transaction;
