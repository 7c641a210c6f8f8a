//! Members in simulated groups.

mod brief_lead;
mod chaos;
mod checks;
mod directed;
mod late_request;
mod membership;
mod network;
mod node;
mod world;
