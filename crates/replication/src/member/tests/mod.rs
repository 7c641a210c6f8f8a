//! Members in simulated groups.

mod brief_lead;
mod chaos;
mod checks;
mod directed;
mod membership;
mod network;
mod node;
mod world;
