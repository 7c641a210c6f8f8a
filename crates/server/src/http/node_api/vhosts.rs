//! Vhosts, each as a whole.

use management::{Change, Unchanged, VhostChange, VhostSettings, VhostTotals};

use super::change;
use crate::node::Node;

impl management::Vhosts for Node {
    fn vhost_names(&self) -> Vec<String> {
        self.vhosts.all().iter().map(|handle| handle.name().to_owned()).collect()
    }

    fn vhost_totals(&self, name: &str, user: Option<&str>) -> Option<VhostTotals> {
        let handle = self.vhosts.get(name)?;
        let traffic = handle.traffic();
        Some(handle.read(|v, _| VhostTotals::of(v, user, &traffic)))
    }

    fn vhost_settings(&self, name: &str) -> Option<VhostSettings> {
        Some((*self.vhosts.get(name)?.settings()).clone())
    }

    fn put_vhost(
        &self,
        name: &str,
        to: VhostChange,
        user: &str,
    ) -> Change<'_, Result<bool, Unchanged>> {
        let (name, user) = (name.to_owned(), user.to_owned());
        change(move || self.make_or_change_vhost(&name, to, &user))
    }

    fn change_vhost(&self, name: &str, to: VhostChange) -> Change<'_, Result<(), Unchanged>> {
        let name = name.to_owned();
        change(move || self.change_settings(&name, |settings| settings.change(to)))
    }

    fn delete_vhost(&self, name: &str) -> Change<'_, Result<(), Unchanged>> {
        let name = name.to_owned();
        change(move || self.remove_vhost(&name))
    }
}
