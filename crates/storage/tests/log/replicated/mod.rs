//! The replicated log: generated histories of a member against a naive model, on disks that are cut off, damaged
//! and full.

mod adoption;
mod damage;
mod fixtures;
mod full;
mod guards;
mod power;
mod shipping;
mod world;
