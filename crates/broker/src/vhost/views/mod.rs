//! Views of a vhost. Every function takes `&Vhost`: a view changes nothing.

mod browse;
pub(super) mod dead_letter_map;
pub(super) mod dry_run;
mod explain;
mod map_delay;
mod map_delays;
mod reach;
mod recorded_deaths;
mod scheduled;
