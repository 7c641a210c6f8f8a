//! Links and streams against scripted peers, and against each other.

mod dialogues;
mod levels;
mod owned_port;
mod running;
mod streams;
