//! Rules about crates: their order, what they depend on, what they may name, what imports what.

pub(super) mod circles;
pub(super) mod dependencies;
pub(super) mod floors;
mod imports;
pub(super) mod layers;
pub(super) mod licences;
pub(super) mod purity;
pub(super) mod reachable;
pub(super) mod rooms;
