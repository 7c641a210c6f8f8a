//! A hash map that cannot be iterated.
//!
//! The core is deterministic: the same commands give the same effects. The order of a hash map is not
//! deterministic, so the hash maps of the core only support look-ups by key. The shell provides the seed of
//! the hashes, because clients choose the names that are hashed.

use std::borrow::Borrow;
use std::hash::Hash;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// A hash map for look-ups by key.
#[derive(Clone, Debug)]
pub(crate) struct Lookup<K, V>(HashMap<K, V, FixedState>);

impl<K: Eq + Hash, V> Lookup<K, V> {
    /// Creates an empty map whose hashes depend on `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self(HashMap::with_hasher(FixedState::with_seed(seed)))
    }

    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.0.get(key)
    }

    pub(crate) fn get_mut<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.0.get_mut(key)
    }

    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.0.insert(key, value)
    }

    pub(crate) fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.0.remove(key)
    }

    /// The value at `key`; inserted by `value` if missing.
    pub(crate) fn or_insert_with(&mut self, key: K, value: impl FnOnce() -> V) -> &mut V {
        self.0.entry(key).or_insert_with(value)
    }
}
