//! Commands about one node.

pub(super) mod backup;
pub(super) mod diagnostics;
pub(super) mod doctor;
pub(super) mod file_check;
pub(super) mod lifecycle;
pub(super) mod listeners;
pub(super) mod maintenance;
pub(super) mod memory;
pub(super) mod report;
pub(super) mod status;
pub(super) mod upgrade;
pub(super) mod watermarks;
