//! Strongly connected components of a directed graph, found without recursion, and a shortest cycle in each.

use std::collections::VecDeque;

/// The component of each node, and the number of nodes in each component (Tarjan's algorithm).
pub(super) struct Components {
    pub(super) of: Vec<usize>,
    pub(super) sizes: Vec<usize>,
}

/// Index of a node that has not been visited yet.
const UNSEEN: usize = usize::MAX;

/// Finds the components of the graph in which `next` lists the successors of each node.
pub(super) fn components(next: &[&[usize]]) -> Components {
    let count = next.len();
    let mut search = Search {
        next,
        index: vec![UNSEEN; count],
        low: vec![UNSEEN; count],
        open: Vec::new(),
        is_open: vec![false; count],
        seen: 0,
        found: Components { of: vec![UNSEEN; count], sizes: Vec::new() },
    };
    for node in 0..count {
        if search.index.get(node) == Some(&UNSEEN) {
            search.walk(node);
        }
    }
    search.found
}

struct Search<'a> {
    next: &'a [&'a [usize]],
    index: Vec<usize>,
    low: Vec<usize>,
    /// Nodes whose component is not known yet.
    open: Vec<usize>,
    is_open: Vec<bool>,
    seen: usize,
    found: Components,
}

impl Search<'_> {
    fn walk(&mut self, root: usize) {
        // Nodes on the current path, each with the number of successors already visited.
        let mut way = vec![(root, 0)];
        self.enter(root);
        while let Some((node, looked_at)) = way.last_mut() {
            let node = *node;
            let follower = self.next.get(node).and_then(|all| all.get(*looked_at)).copied();
            *looked_at += 1;
            match follower {
                Some(follower) if self.index.get(follower) == Some(&UNSEEN) => {
                    self.enter(follower);
                    way.push((follower, 0));
                }
                Some(follower) => {
                    if self.is_open.get(follower) == Some(&true) {
                        let index = self.index.get(follower).copied();
                        self.lower(node, index);
                    }
                }
                None => {
                    way.pop();
                    let low = self.low.get(node).copied();
                    if low == self.index.get(node).copied() {
                        self.close(node);
                    }
                    if let Some((before, _)) = way.last() {
                        self.lower(*before, low);
                    }
                }
            }
        }
    }

    fn enter(&mut self, node: usize) {
        for list in [&mut self.index, &mut self.low] {
            set(list, node, self.seen);
        }
        self.seen += 1;
        self.open.push(node);
        set(&mut self.is_open, node, true);
    }

    fn lower(&mut self, node: usize, to: Option<usize>) {
        if let (Some(low), Some(to)) = (self.low.get_mut(node), to) {
            *low = (*low).min(to);
        }
    }

    /// Closes a component: all nodes opened since `root`.
    fn close(&mut self, root: usize) {
        let component = self.found.sizes.len();
        let mut size = 0;
        while let Some(node) = self.open.pop() {
            set(&mut self.is_open, node, false);
            set(&mut self.found.of, node, component);
            size += 1;
            if node == root {
                break;
            }
        }
        self.found.sizes.push(size);
    }
}

fn set<T>(list: &mut [T], at: usize, value: T) {
    if let Some(place) = list.get_mut(at) {
        *place = value;
    }
}

impl Components {
    /// A shortest cycle through `start` within its component; begins with `start`.
    pub(super) fn way_around(&self, next: &[&[usize]], start: usize) -> Vec<usize> {
        let component = self.of.get(start);
        let mut before: std::collections::BTreeMap<usize, usize> =
            std::collections::BTreeMap::new();
        let mut to_visit = VecDeque::from([start]);
        while let Some(node) = to_visit.pop_front() {
            for follower in next.get(node).copied().unwrap_or_default() {
                if self.of.get(*follower) == component && !before.contains_key(follower) {
                    before.insert(*follower, node);
                    to_visit.push_back(*follower);
                }
            }
            if before.contains_key(&start) {
                break;
            }
        }
        let mut way = Vec::new();
        let mut at = start;
        while let Some(node) = before.get(&at) {
            way.push(*node);
            at = *node;
            if at == start {
                break;
            }
        }
        way.reverse();
        way
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slices(next: &[Vec<usize>]) -> Vec<&[usize]> {
        next.iter().map(Vec::as_slice).collect()
    }

    #[test]
    fn shortest_cycle_is_found() {
        let next = [vec![1], vec![2, 3], vec![0], vec![2], vec![4], vec![0]];
        let next = slices(&next);
        let found = components(&next);
        let around = |start| found.way_around(&next, start);
        assert_eq!((around(0), around(4)), (vec![0, 1, 2], vec![4]));
        assert_eq!((around(3), around(5)), (vec![3, 2, 0, 1], vec![]));
        assert_eq!(found.of[0], found.of[3]);
        assert_ne!(found.of[0], found.of[5]);
        assert_eq!(found.sizes.iter().sum::<usize>(), 6);
    }

    #[test]
    fn chain_of_a_hundred_thousand_needs_no_stack() {
        let next: Vec<Vec<usize>> = (0..100_000).map(|node| vec![(node + 1) % 100_000]).collect();
        let next = slices(&next);
        let found = components(&next);
        assert_eq!(found.sizes, [100_000]);
        assert_eq!(found.way_around(&next, 5).len(), 100_000);
    }

    proptest! {
        /// Two nodes are in one component if and only if each reaches the other.
        #[test]
        fn a_component_is_what_reaches_each_other(
            edges in prop::collection::vec((0_usize..8, 0_usize..8), 0..20),
        ) {
            let mut next = vec![Vec::new(); 8];
            let mut reaches = [[false; 8]; 8];
            for (from, to) in &edges {
                next[*from].push(*to);
                reaches[*from][*to] = true;
            }
            for k in 0..8 {
                let through = reaches[k];
                for from in reaches.iter_mut().filter(|from| from[k]) {
                    from.iter_mut().zip(through).for_each(|(to, further)| *to |= further);
                }
            }
            let next = slices(&next);
            let found = components(&next);
            for (i, from_i) in reaches.iter().enumerate() {
                for (j, from_j) in reaches.iter().enumerate() {
                    let together = i == j || (from_i[j] && from_j[i]);
                    prop_assert_eq!(found.of[i] == found.of[j], together, "{} {}", i, j);
                }
                let around = found.way_around(&next, i);
                prop_assert_eq!(!around.is_empty(), from_i[i]);
                for (at, node) in around.iter().enumerate() {
                    let follower = around[(at + 1) % around.len()];
                    prop_assert!(next[*node].contains(&follower));
                }
            }
        }
    }
}
