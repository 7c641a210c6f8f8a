//! What was the case until now.

use crate::SharedHistory;

/// Samples of everything, taken at an interval.
pub trait Statistics {
    /// They.
    fn history(&self) -> &SharedHistory;
}
