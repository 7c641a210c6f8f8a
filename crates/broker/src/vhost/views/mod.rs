//! Views of a vhost, which change nothing: every function takes `&Vhost`.

mod browse;
pub(super) mod dead_letter_map;
pub(super) mod dry_run;
mod reach;
