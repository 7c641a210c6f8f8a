//! Checks for input that a fuzzer makes up: one module for each target.
//!
//! A check takes bytes and panics when something does not hold. None of them knows the fuzzer, so that an
//! input can be looked at in any program; `main.rs` binds them to libFuzzer.
#![allow(clippy::missing_panics_doc, reason = "to panic is how a check tells what it found")]

pub mod cluster_adopt;
pub mod cluster_frame;
pub mod cluster_hello;
pub mod configuration;
pub mod death_lines;
pub mod definitions;
pub mod frames;
pub mod http;
pub mod log_recovery;
pub mod login;
pub mod methods;
pub mod patterns;
pub mod session;
pub mod tables;
pub mod topic;

mod node;
mod users;

/// Check of one input.
pub type Check = fn(&[u8]);

/// All targets by name.
pub const TARGETS: &[(&str, Check)] = &[
    ("cluster_adopt", cluster_adopt::check),
    ("cluster_frame", cluster_frame::check),
    ("cluster_hello", cluster_hello::check),
    ("configuration", configuration::check),
    ("death_lines", death_lines::check),
    ("definitions", definitions::check),
    ("frames", frames::check),
    ("http", http::check),
    ("log_recovery", log_recovery::check),
    ("login", login::check),
    ("methods", methods::check),
    ("patterns", patterns::check),
    ("session", session::check),
    ("tables", tables::check),
    ("topic", topic::check),
];

#[allow(
    unreachable_pub,
    dead_code,
    reason = "shared with the tests of the codec, which use all of it"
)]
#[path = "../../crates/amqp/tests/codec/primitives_model.rs"]
mod primitives_model;
