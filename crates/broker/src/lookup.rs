//! A hash map that cannot be iterated.
//!
//! The core is deterministic: the same commands give the same effects. A hash map's order is not
//! part of that, so the maps of the core only answer questions about a key. Hashes are seeded by the
//! shell, because clients choose the names that are hashed.

use std::borrow::Borrow;
use std::hash::Hash;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// A map for questions about one key.
#[derive(Clone, Debug)]
pub(crate) struct Lookup<K, V>(HashMap<K, V, FixedState>);

impl<K: Eq + Hash, V> Lookup<K, V> {
    /// An empty map whose hashes depend on `seed`.
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

    pub(crate) fn contains_key<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.contains_key(key)
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

    /// The value at `key`, made by `value` if there is none.
    pub(crate) fn or_insert_with(&mut self, key: K, value: impl FnOnce() -> V) -> &mut V {
        self.0.entry(key).or_insert_with(value)
    }
}
