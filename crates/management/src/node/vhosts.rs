//! Vhosts, each as a whole.

use crate::{VhostSnapshot, VhostTotals};

/// The vhosts of the node.
pub trait Vhosts {
    /// Every vhost with its queues, by name.
    fn vhosts(&self) -> Vec<VhostSnapshot>;

    /// The names of all vhosts, in order.
    fn vhost_names(&self) -> Vec<String>;

    /// The sums of a vhost, if there is one of that name; with a user, of connections and channels
    /// only his.
    fn vhost_totals(&self, name: &str, user: Option<&str>) -> Option<VhostTotals>;
}
