//! Commands about policies and definitions.

pub(super) mod definitions;
pub(super) mod import_preview;
pub(super) mod policies;
pub(super) mod policy_preview;
pub(super) mod shovels;
