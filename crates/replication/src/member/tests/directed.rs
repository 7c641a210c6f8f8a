//! Directed histories.
