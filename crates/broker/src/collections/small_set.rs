//! A sorted set that is small most of the time: a list while it has few elements, a tree beyond.
//!
//! A node of a tree has room for eleven elements. Most queues and exchanges have one binding or two, so that
//! their trees would be empty for the most part.

use std::collections::BTreeSet;
use std::{collections, slice, vec};

/// A sorted set.
#[derive(Clone, Debug)]
pub(crate) enum SmallSet<T> {
    /// A sorted list of at most [`FEW`] elements.
    Few(Vec<T>),
    #[expect(clippy::box_collection, reason = "the set then takes the room of a list")]
    Many(Box<BTreeSet<T>>),
}

/// Most elements of a list; an insertion moves half of them at worst.
const FEW: usize = 16;

impl<T> Default for SmallSet<T> {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl<T: Ord> SmallSet<T> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Few(list) => list.len(),
            Self::Many(tree) => tree.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn contains(&self, element: &T) -> bool {
        match self {
            Self::Few(list) => list.binary_search(element).is_ok(),
            Self::Many(tree) => tree.contains(element),
        }
    }

    pub(crate) fn first(&self) -> Option<&T> {
        self.iter().next()
    }

    /// Adds an element. False if it was there.
    pub(crate) fn insert(&mut self, element: T) -> bool {
        if let Self::Few(list) = self {
            let Err(at) = list.binary_search(&element) else { return false };
            if list.len() < FEW {
                list.reserve_exact(1);
                list.insert(at, element);
                return true;
            }
            *self = Self::Many(Box::new(list.drain(..).collect()));
        }
        match self {
            Self::Few(_) => unreachable!("a full list became a tree"),
            Self::Many(tree) => tree.insert(element),
        }
    }

    /// Removes an element. False if it was not there.
    pub(crate) fn remove(&mut self, element: &T) -> bool {
        match self {
            Self::Few(list) => {
                let Ok(at) = list.binary_search(element) else { return false };
                list.remove(at);
                if list.is_empty() {
                    *list = Vec::new();
                }
                true
            }
            Self::Many(tree) => {
                let was_there = tree.remove(element);
                // Half of the room is left, so that one element does not change the form again and again.
                if tree.len() <= FEW / 2 {
                    *self = Self::Few(std::mem::take(&mut **tree).into_iter().collect());
                }
                was_there
            }
        }
    }

    /// The elements in ascending order.
    pub(crate) fn iter(&self) -> Iter<'_, T> {
        match self {
            Self::Few(list) => Iter::Few(list.iter()),
            Self::Many(tree) => Iter::Many(tree.iter()),
        }
    }
}

/// The elements of a borrowed set.
pub(crate) enum Iter<'a, T> {
    Few(slice::Iter<'a, T>),
    Many(collections::btree_set::Iter<'a, T>),
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        match self {
            Self::Few(list) => list.next(),
            Self::Many(tree) => tree.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Self::Few(list) => list.size_hint(),
            Self::Many(tree) => tree.size_hint(),
        }
    }
}

impl<'a, T: Ord> IntoIterator for &'a SmallSet<T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// The elements of a set that is taken apart.
pub(crate) enum IntoIter<T> {
    Few(vec::IntoIter<T>),
    Many(collections::btree_set::IntoIter<T>),
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match self {
            Self::Few(list) => list.next(),
            Self::Many(tree) => tree.next(),
        }
    }
}

impl<T> IntoIterator for SmallSet<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        match self {
            Self::Few(list) => IntoIter::Few(list.into_iter()),
            Self::Many(tree) => IntoIter::Many(tree.into_iter()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn small_set_is_a_set(changes in prop::collection::vec((0_u8..40, any::<bool>()), 0..200)) {
            let (mut set, mut model) = (SmallSet::default(), BTreeSet::new());
            for (element, is_added) in changes {
                if is_added {
                    prop_assert_eq!(set.insert(element), model.insert(element));
                } else {
                    prop_assert_eq!(set.remove(&element), model.remove(&element));
                }
                prop_assert!(set.iter().eq(model.iter()), "{:?}", set);
                prop_assert_eq!((set.len(), set.is_empty()), (model.len(), model.is_empty()));
                prop_assert_eq!((set.first(), set.contains(&7)), (model.first(), model.contains(&7)));
                prop_assert!(set.len() > FEW / 2 || matches!(set, SmallSet::Few(_)));
            }
            prop_assert!(set.into_iter().eq(model));
        }
    }
}
