//! The codec, through its front door.
//!
//! `generate` makes inputs, `primitives_model` is a second, naive description of tables to compare with,
//! and every other module tests the part of the crate that it is named after. What "observed" inputs
//! and texts stand here were recorded from a live RabbitMQ 4.3.6.

mod content;
mod erlang_binary;
mod frame;
mod generate;
mod hostile;
mod independent;
mod method;
mod normalise;
mod primitives;
mod primitives_model;
mod properties;
mod protocol_header;
mod reply_code;
mod sasl;
mod table;
