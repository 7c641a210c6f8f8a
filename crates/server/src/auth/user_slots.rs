//! Connections and channels of each user, counted over the whole node for the user's limits.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// The counts of one user.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct SlotsInUse {
    connections: u64,
    channels: u64,
}

/// The counts of all users with connections.
#[derive(Default, Debug)]
pub(crate) struct UserSlots(Mutex<BTreeMap<String, SlotsInUse>>);

impl UserSlots {
    /// Takes a connection slot for a user, if the user has fewer than `max` connections.
    pub(crate) fn take(self: &Arc<Self>, user: &str, max: Option<u64>) -> Option<UserSlot> {
        let mut all = self.0.lock();
        let connections = all.get(user).map_or(0, |taken| taken.connections);
        if max.is_some_and(|max| connections >= max) {
            return None;
        }
        all.entry(user.to_owned()).or_default().connections += 1;
        Some(UserSlot { slots: Arc::clone(self), user: user.to_owned(), channels: 0 })
    }
}

/// The slot of one connection and its channels, released when dropped.
#[derive(Debug)]
pub(crate) struct UserSlot {
    slots: Arc<UserSlots>,
    user: String,
    channels: u64,
}

impl UserSlot {
    /// Sets the number of channels of the connection; false if its user would then have more than `max`.
    pub(crate) fn set_channels(&mut self, channels: u64, max: Option<u64>) -> bool {
        if channels == self.channels && max.is_none() {
            return true;
        }
        let mut all = self.slots.0.lock();
        let Some(taken) = all.get_mut(&self.user) else { return true };
        taken.channels = taken.channels - self.channels + channels;
        self.channels = channels;
        max.is_none_or(|max| taken.channels <= max)
    }
}

impl Drop for UserSlot {
    fn drop(&mut self) {
        let mut all = self.slots.0.lock();
        if let Some(taken) = all.get_mut(&self.user) {
            taken.connections -= 1;
            taken.channels -= self.channels;
            if *taken == SlotsInUse::default() {
                all.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_slots_count_connections_and_their_channels() {
        let slots = Arc::new(UserSlots::default());
        let mut first = slots.take("anna", Some(2)).unwrap();
        let mut second = slots.take("anna", Some(2)).unwrap();
        assert!(slots.take("anna", Some(2)).is_none() && slots.take("bob", Some(0)).is_none());
        let _bob = slots.take("bob", Some(1)).unwrap();
        assert!(first.set_channels(2, Some(3)) && second.set_channels(1, Some(3)));
        assert!(!second.set_channels(2, Some(3)));
        drop(first);
        assert!(second.set_channels(3, Some(3)));
        assert!(slots.take("anna", Some(2)).is_some());
        drop(second);
        assert_eq!(slots.0.lock().len(), 1, "who has nothing is forgotten");
    }
}
