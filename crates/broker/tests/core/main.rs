//! Tests of the core with a whole vhost: scripts, a naive model, and what each module below says.
//!
//! They are one program, which is linked once.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::wildcard_enum_match_arm, reason = "a test names the effects that it expects")]

mod browse;
mod commands;
mod dead_letter_history;
mod dead_letter_map;
mod delivery_times;
mod disk;
mod dry_run;
mod explain;
mod growth;
mod long_queues;
mod lost_declarations;
mod model;
mod redelivered;
mod replicas;
mod scaling;
mod scheduled_pages;
mod scheduled_views;
mod script;
mod scripts;
mod work;
