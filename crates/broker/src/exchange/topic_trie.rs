//! The binding keys of a topic exchange with many bindings: a trie with one level per word.
//!
//! Matching consumes the words of a routing key one by one
//! and keeps the set of nodes reached so far. The work grows with the length of the key and the number of
//! nodes that match, independent of the wildcards.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;

use super::binding::{Binding, Destination};
use super::destinations::Destinations;
use super::keys::{Positions, Words as KeyWords, words};

/// The trie of binding keys.
#[derive(Default, Debug)]
pub(super) struct Trie {
    root: Node,
}

/// A node. Ladders of delays have keys that begin with up to 27 `*`, so that a node with nothing else is small.
#[derive(Default, Debug)]
struct Node {
    /// The node below `*`.
    any_word: Option<Box<Self>>,
    rest: Option<Box<Rest>>,
}

/// The parts of a node that not every node has.
#[derive(Default, Debug)]
struct Rest {
    words: Words,
    /// The node below `#`.
    any_words: Option<Box<Node>>,
    /// Destinations of the binding key that ends at this node.
    destinations: Destinations,
}

impl Rest {
    fn is_empty(&self) -> bool {
        self.words.is_empty() && self.any_words.is_none() && self.destinations.is_empty()
    }
}

/// The nodes below plain words: a sorted list, or a map where there are many. Most nodes have one or two
/// children, for which a map would take ten times the memory.
#[derive(Debug)]
enum Words {
    Few(Vec<(Box<[u8]>, Node)>),
    Many(BTreeMap<Box<[u8]>, Node>),
}

impl Default for Words {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Words {
    const FEW: usize = 8;

    fn is_empty(&self) -> bool {
        match self {
            Self::Few(list) => list.is_empty(),
            Self::Many(map) => map.is_empty(),
        }
    }

    fn get(&self, word: &[u8]) -> Option<&Node> {
        match self {
            Self::Few(list) => {
                let at = list.binary_search_by(|(known, _)| (**known).cmp(word)).ok()?;
                list.get(at).map(|(_, node)| node)
            }
            Self::Many(map) => map.get(word),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Few(list) => list.len(),
            Self::Many(map) => map.len(),
        }
    }

    /// Calls `each` with every word and the node below it.
    fn for_each<'a>(&'a self, mut each: impl FnMut(&'a [u8], &'a Node)) {
        match self {
            Self::Few(list) => list.iter().for_each(|(word, node)| each(word, node)),
            Self::Many(map) => map.iter().for_each(|(word, node)| each(word, node)),
        }
    }

    fn get_mut(&mut self, word: &[u8]) -> Option<&mut Node> {
        match self {
            Self::Few(list) => {
                let at = list.binary_search_by(|(known, _)| (**known).cmp(word)).ok()?;
                list.get_mut(at).map(|(_, node)| node)
            }
            Self::Many(map) => map.get_mut(word),
        }
    }

    fn get_or_insert(&mut self, word: &[u8]) -> &mut Node {
        if let Self::Few(list) = self
            && list.len() == Self::FEW
        {
            *self = Self::Many(list.drain(..).collect());
        }
        match self {
            Self::Few(list) => {
                let at = list.binary_search_by(|(known, _)| (**known).cmp(word));
                let at = at.unwrap_or_else(|at| {
                    list.reserve_exact(1);
                    list.insert(at, (word.into(), Node::default()));
                    at
                });
                &mut list[at].1
            }
            Self::Many(map) => map.entry(word.into()).or_default(),
        }
    }

    fn remove(&mut self, word: &[u8]) {
        match self {
            Self::Few(list) => list.retain(|(known, _)| **known != *word),
            Self::Many(map) => {
                map.remove(word);
            }
        }
    }
}

impl Node {
    fn is_empty(&self) -> bool {
        self.any_word.is_none() && self.rest.is_none()
    }

    /// The node below the word of a routing key.
    fn word(&self, word: &[u8]) -> Option<&Self> {
        self.rest.as_ref()?.words.get(word)
    }

    /// The node below `#`.
    fn any_words(&self) -> Option<&Self> {
        self.rest.as_ref()?.any_words.as_deref()
    }

    fn add(&mut self, destination: Destination) {
        self.rest.get_or_insert_default().destinations.add(destination);
    }

    /// The node below a word of a binding key; created if missing.
    fn below(&mut self, word: &[u8]) -> &mut Self {
        match word {
            b"*" => self.any_word.get_or_insert_default(),
            b"#" => self.rest.get_or_insert_default().any_words.get_or_insert_default(),
            word => self.rest.get_or_insert_default().words.get_or_insert(word),
        }
    }

    /// Calls `found` with the destinations below this node that these key positions lead to. Recursion is as
    /// deep as binding keys have words: at most 256.
    fn route_all(&self, keys: &KeyWords<'_>, set: &Positions, found: &mut dyn FnMut(Destination)) {
        if let Some(below) = &self.any_word
            && let Some(set) = keys.behind_any_word(set)
        {
            below.route_all(keys, &set, found);
        }
        let Some(rest) = &self.rest else { return };
        if keys.ends_in(set) {
            rest.destinations.each(found);
        }
        if let Some(below) = &rest.any_words {
            below.route_all(keys, &keys.behind_any_words(set), found);
        }
        let mut follow = |below: &Self, number| {
            if let Some(set) = keys.behind_word(set, number) {
                below.route_all(keys, &set, found);
            }
        };
        // Iterates over the smaller side: the words below, or those of the keys.
        if rest.words.len() <= keys.count_in(set) {
            rest.words.for_each(|word, below| {
                if let Some(number) = keys.number(word) {
                    follow(below, number);
                }
            });
        } else {
            for number in keys.numbers_in(set) {
                if let Some(below) = rest.words.get(keys.text(number)) {
                    follow(below, number);
                }
            }
        }
    }

    /// Removes a destination from the node where its binding key ends, and prunes nodes that become empty.
    fn remove(&mut self, path: &[&[u8]], destination: Destination) {
        const ADDED: &str = "a binding that is removed was added";
        let next = path.split_first().map(|(word, path)| (*word, path));
        if let Some((b"*", path)) = next {
            let below = self.any_word.as_mut().expect(ADDED);
            below.remove(path, destination);
            if below.is_empty() {
                self.any_word = None;
            }
            return;
        }
        let rest = self.rest.as_mut().expect(ADDED);
        match next {
            None => rest.destinations.remove(destination),
            Some((b"#", path)) => {
                let below = rest.any_words.as_mut().expect(ADDED);
                below.remove(path, destination);
                if below.is_empty() {
                    rest.any_words = None;
                }
            }
            Some((word, path)) => {
                let below = rest.words.get_mut(word).expect(ADDED);
                below.remove(path, destination);
                if below.is_empty() {
                    rest.words.remove(word);
                }
            }
        }
        if rest.is_empty() {
            self.rest = None;
        }
    }
}

impl Trie {
    pub(super) fn bind(&mut self, binding: &Binding) {
        let node = words(binding.routing_key.as_bytes()).fold(&mut self.root, Node::below);
        node.add(binding.destination);
    }

    pub(super) fn unbind(&mut self, binding: &Binding) {
        let path: Vec<&[u8]> = words(binding.routing_key.as_bytes()).collect();
        self.root.remove(&path, binding.destination);
    }

    pub(super) fn route(&self, routing_key: &[u8], found: &mut dyn FnMut(Destination)) {
        let mut reached = Reached::default();
        reached.enter(&self.root);
        for word in words(routing_key) {
            reached.step(word);
        }
        for node in reached.nodes.iter().chain(&reached.loops) {
            if let Some(rest) = &node.rest {
                rest.destinations.each(found);
            }
        }
    }

    /// Calls `found` with the destinations of several keys and visits each node once.
    pub(super) fn route_all(&self, keys: &KeyWords<'_>, found: &mut dyn FnMut(Destination)) {
        self.root.route_all(keys, &keys.starts(), found);
    }
}

/// The nodes reached by the words consumed so far, each once.
#[derive(Default)]
struct Reached<'a> {
    nodes: SmallVec<[&'a Node; 8]>,
    /// The nodes below a `#`, which consume any number of further words.
    loops: SmallVec<[&'a Node; 4]>,
    /// Identities of the nodes in `loops`; only these nodes can be reached twice.
    known: BTreeSet<*const Node>,
}

impl<'a> Reached<'a> {
    /// Adds a node and, because `#` also matches no word, the node below its `#`.
    fn enter(&mut self, node: &'a Node) {
        self.nodes.push(node);
        let mut below = node.any_words();
        while let Some(node) = below
            && self.known.insert(std::ptr::from_ref(node))
        {
            self.loops.push(node);
            below = node.any_words();
        }
    }

    /// Consumes the next word.
    fn step(&mut self, word: &[u8]) {
        let nodes = std::mem::take(&mut self.nodes);
        // A loop entered by this word takes effect from the next word on.
        let loops = self.loops.len();
        for node in nodes {
            self.follow(node, word);
        }
        for at in 0..loops {
            if let Some(node) = self.loops.get(at).copied() {
                self.follow(node, word);
            }
        }
    }

    fn follow(&mut self, node: &'a Node, word: &[u8]) {
        if let Some(next) = node.word(word) {
            self.enter(next);
        }
        if let Some(next) = node.any_word.as_deref() {
            self.enter(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use slotmap::SlotMap;

    use super::super::binding::BindingArguments;
    use super::*;
    use crate::ids::QueueId;

    fn matches(pattern: &str, key: &str) -> bool {
        let queue = SlotMap::<QueueId, ()>::with_key().insert(());
        let binding = Binding {
            destination: Destination::Queue(queue),
            routing_key: pattern.into(),
            arguments: BindingArguments::default(),
        };
        let mut trie = Trie::default();
        trie.bind(&binding);
        let mut found = false;
        trie.route(key.as_bytes(), &mut |_| found = true);
        trie.unbind(&binding);
        assert!(trie.root.is_empty(), "{pattern} leaves nothing behind");
        found
    }

    #[test]
    fn star_is_one_word_and_hash_any_number() {
        for (pattern, key, expected) in [
            ("a.b.c", "a.b.c", true),
            ("a.b.c", "a.b", false),
            ("a.*.c", "a.x.c", true),
            ("a.*.c", "a.c", false),
            ("a.*.c", "a.x.y.c", false),
            ("a.#", "a", true),
            ("a.#", "a.b.c", true),
            ("a.#", "b", false),
            ("#", "", true),
            ("#", "a.b.c", true),
            ("*", "", false),
            ("*", "a", true),
            ("#.c", "c", true),
            ("#.c", "a.b.c", true),
            ("#.c", "a.b.c.d", false),
            ("#.b.#", "a.b.c", true),
            ("#.b.#", "b", true),
            ("#.b.#", "a.c", false),
            ("*.*.1.#", "0.0.1.0.q", true),
            ("a..b", "a..b", true),
            ("a.*.b", "a..b", true),
            ("", "", true),
            ("", "a", false),
            ("*.#", "a", true),
            ("#.*", "a", true),
            ("#.*", "", false),
            ("#.#", "", true),
            ("#.#", "a.b", true),
            ("#.*.#", "", false),
            ("#.*.#", "a", true),
            ("#.*.#", "a.b.c", true),
            ("#.a.#.b", "x.a.y.a.b", true),
            ("#.a.#.b", "a.b.a", false),
            ("*.*.*", "a.b", false),
        ] {
            assert_eq!(matches(pattern, key), expected, "{pattern} matches {key}");
        }
    }

    /// Matches a binding key word by word, as the specification defines it.
    fn naive(pattern: &[&[u8]], key: &[&[u8]]) -> bool {
        match (pattern.split_first(), key.split_first()) {
            (None, None) => true,
            (None, Some(_)) => false,
            (Some((&b"#", rest)), _) => (0..=key.len()).any(|n| naive(rest, &key[n..])),
            (Some(_), None) => false,
            (Some((&b"*", rest)), Some((_, key))) => naive(rest, key),
            (Some((wanted, rest)), Some((word, key))) => wanted == word && naive(rest, key),
        }
    }

    proptest! {
        #[test]
        fn trie_matches_as_each_binding_alone(
            patterns in prop::collection::vec("[ab*#](\\.[ab*#]){0,5}", 1..30),
            keys in prop::collection::vec("[abc]?(\\.[ab]){0,6}", 1..40),
        ) {
            let mut queues = SlotMap::<QueueId, ()>::with_key();
            let mut trie = Trie::default();
            let bindings: Vec<Binding> = patterns.iter().map(|pattern| Binding {
                destination: Destination::Queue(queues.insert(())),
                routing_key: pattern.as_str().into(),
                arguments: BindingArguments::default(),
            }).collect();
            bindings.iter().for_each(|binding| trie.bind(binding));
            for key in &keys {
                let mut found = Vec::new();
                trie.route(key.as_bytes(), &mut |destination| found.push(destination));
                found.sort_unstable();
                let mut at_once = Vec::new();
                let one = KeyWords::new(&[key.as_bytes()]);
                trie.route_all(&one, &mut |destination| at_once.push(destination));
                at_once.sort_unstable();
                prop_assert_eq!(&at_once, &found);
                let key: Vec<&[u8]> = words(key.as_bytes()).collect();
                let matching = bindings.iter().filter(|binding| {
                    let pattern: Vec<&[u8]> = words(binding.routing_key.as_bytes()).collect();
                    naive(&pattern, &key)
                });
                let expected: Vec<Destination> = matching.map(|b| b.destination).collect();
                prop_assert_eq!(found, expected);
            }
            let all: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
            let (mut together, mut one_by_one) = (Vec::new(), Vec::new());
            trie.route_all(&KeyWords::new(&all), &mut |destination| together.push(destination));
            for key in all {
                trie.route(key, &mut |destination| one_by_one.push(destination));
            }
            together.sort_unstable();
            one_by_one.sort_unstable();
            one_by_one.dedup();
            prop_assert_eq!(together, one_by_one, "each once");
            bindings.iter().for_each(|binding| trie.unbind(binding));
            prop_assert!(trie.root.is_empty());
        }
    }

    #[test]
    fn routing_key_has_no_wildcards() {
        assert!(matches("*", "#"));
        assert!(matches("#", "*"));
        assert!(!matches("a", "*"));
        assert!(!matches("a", "#"));
    }
}
