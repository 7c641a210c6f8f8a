//! Connections and channels of each user, counted over the whole node for the user's limits. In a cluster each node counts
//! the clients of the vhosts that it leads, and nodes tell each other the counts of users with limits.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The connections and channels of one user.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct ClientCounts {
    pub(crate) connections: u64,
    pub(crate) channels: u64,
}

impl ClientCounts {
    /// The sum; counts that other nodes tell may be anything.
    pub(crate) fn add(self, other: Self) -> Self {
        Self {
            connections: self.connections.saturating_add(other.connections),
            channels: self.channels.saturating_add(other.channels),
        }
    }
}

/// Counts of some users, by name.
pub(crate) type UserCounts = BTreeMap<String, ClientCounts>;

/// The counts of all users with connections.
#[derive(Default, Debug)]
pub(crate) struct UserSlots {
    in_use: Mutex<UserCounts>,
    /// Told when a count has changed.
    changed: Arc<Notify>,
}

impl UserSlots {
    /// No connections yet; `changed` is told when a count has changed.
    pub(crate) fn new(changed: Arc<Notify>) -> Self {
        Self { in_use: Mutex::default(), changed }
    }

    /// Takes a connection slot for a user, if the user has fewer than `max` connections with those elsewhere.
    pub(crate) fn take(
        self: &Arc<Self>,
        user: &str,
        max: Option<u64>,
        elsewhere: ClientCounts,
    ) -> Option<UserSlot> {
        let mut all = self.in_use.lock();
        let taken = all.get(user).copied().unwrap_or_default();
        if max.is_some_and(|max| taken.add(elsewhere).connections >= max) {
            return None;
        }
        all.entry(user.to_owned()).or_default().connections += 1;
        self.note_change();
        Some(UserSlot { slots: Arc::clone(self), user: user.to_owned(), channels: 0 })
    }

    /// The counts of the first `count_max` users that are wanted.
    pub(crate) fn counts(&self, is_wanted: impl Fn(&str) -> bool, count_max: usize) -> UserCounts {
        let all = self.in_use.lock();
        let wanted = all.iter().filter(|(user, _)| is_wanted(user)).take(count_max);
        wanted.map(|(user, counts)| (user.clone(), *counts)).collect()
    }

    /// A count has changed, or is wanted now.
    pub(crate) fn note_change(&self) {
        self.changed.notify_one();
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
    /// Sets the number of channels of the connection; false if its user would then have more than `max` with those
    /// elsewhere.
    pub(crate) fn set_channels(
        &mut self,
        channels: u64,
        max: Option<u64>,
        elsewhere: ClientCounts,
    ) -> bool {
        if channels == self.channels && max.is_none() {
            return true;
        }
        let mut all = self.slots.in_use.lock();
        let Some(taken) = all.get_mut(&self.user) else { return true };
        taken.channels = taken.channels - self.channels + channels;
        self.channels = channels;
        self.slots.note_change();
        max.is_none_or(|max| taken.add(elsewhere).channels <= max)
    }
}

impl Drop for UserSlot {
    fn drop(&mut self) {
        let mut all = self.slots.in_use.lock();
        if let Some(taken) = all.get_mut(&self.user) {
            taken.connections -= 1;
            taken.channels -= self.channels;
            if *taken == ClientCounts::default() {
                all.remove(&self.user);
            }
        }
        self.slots.note_change();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: ClientCounts = ClientCounts { connections: 0, channels: 0 };

    #[test]
    fn user_slots_count_connections_and_their_channels() {
        let slots = Arc::new(UserSlots::default());
        let mut first = slots.take("anna", Some(2), NONE).unwrap();
        let mut second = slots.take("anna", Some(2), NONE).unwrap();
        assert!(slots.take("anna", Some(2), NONE).is_none());
        assert!(slots.take("bob", Some(0), NONE).is_none());
        let _bob = slots.take("bob", Some(1), NONE).unwrap();
        assert!(first.set_channels(2, Some(3), NONE) && second.set_channels(1, Some(3), NONE));
        assert!(!second.set_channels(2, Some(3), NONE));
        drop(first);
        assert!(second.set_channels(3, Some(3), NONE));
        assert!(slots.take("anna", Some(2), NONE).is_some());
        drop(second);
        assert_eq!(slots.in_use.lock().len(), 1, "who has nothing is forgotten");
    }

    #[test]
    fn user_slots_count_clients_of_other_nodes() {
        let slots = Arc::new(UserSlots::default());
        let elsewhere = ClientCounts { connections: 2, channels: 3 };
        assert!(slots.take("anna", Some(2), elsewhere).is_none());
        let mut slot = slots.take("anna", Some(3), elsewhere).unwrap();
        assert!(slot.set_channels(1, Some(4), elsewhere));
        assert!(!slot.set_channels(2, Some(4), elsewhere));
        let much = ClientCounts { connections: u64::MAX, channels: u64::MAX };
        assert!(!slot.set_channels(2, Some(u64::MAX - 1), much));
        assert!(slots.take("anna", None, much).is_some());
    }

    #[test]
    fn counts_are_those_of_wanted_users() {
        let slots = Arc::new(UserSlots::default());
        let _taken = ["anna", "bob", "eve"].map(|user| slots.take(user, None, NONE).unwrap());
        let counts = slots.counts(|user| user != "anna", 1);
        let one = ClientCounts { connections: 1, channels: 0 };
        assert_eq!(counts, BTreeMap::from([("bob".to_owned(), one)]));
    }
}
