//! The log on disks that are cut off, damaged, and older than the program.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod book;
mod concurrent;
mod damage;
mod deletions;
mod fixtures;
mod full;
mod history;
mod large;
mod pages;
mod power;
mod progress;
mod replicated;
mod snapshot;
mod verify;
