//! Links against scripted peers, and against each other.

mod dialogues;
mod running;
