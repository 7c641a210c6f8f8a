//! Commands about the program itself.

pub(super) mod absent;
pub(super) mod completion;
pub(super) mod context;
pub(super) mod eval;
pub(super) mod features;
pub(super) mod help;
pub(super) mod plugins;
