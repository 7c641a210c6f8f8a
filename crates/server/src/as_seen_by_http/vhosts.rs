//! Vhosts, each as a whole.

use management::{VhostSnapshot, VhostTotals};

use crate::node::Node;

impl management::Vhosts for Node {
    fn vhosts(&self) -> Vec<VhostSnapshot> {
        self.vhosts.all().iter().map(|cell| cell.with(|v, _| VhostSnapshot::of(v))).collect()
    }

    fn vhost_names(&self) -> Vec<String> {
        self.vhosts.ids().into_iter().map(|(name, _)| name).collect()
    }

    fn vhost_totals(&self, name: &str, user: Option<&str>) -> Option<VhostTotals> {
        Some(self.vhosts.get(name)?.with(|v, _| VhostTotals::of(v, user)))
    }
}
