//! Topic exchanges: binding keys are words between dots, `*` stands for one word, `#` for any number
//! of words including none.
//!
//! Binding keys form a trie with one level per word. A routing key walks it along every branch that
//! can still match. At most two `#` per binding key keep that walk polynomial.

use std::collections::BTreeMap;

use super::{Binding, Destination, Destinations};
use crate::limits::TOPIC_HASH_WILDCARDS_MAX;
use crate::refusal::Refusal;

/// The trie of binding keys.
#[derive(Default, Debug)]
pub(super) struct Topic {
    root: Node,
}

#[derive(Default, Debug)]
struct Node {
    words: BTreeMap<Box<[u8]>, Self>,
    /// Where a binding key ends.
    destinations: Destinations,
}

impl Node {
    fn is_empty(&self) -> bool {
        self.words.is_empty() && self.destinations.is_empty()
    }
}

/// Refuses binding keys with too many `#` (RabbitMQ 4.3.5 and later).
pub(super) fn check_binding(key: &str) -> Result<(), Refusal> {
    let wildcards = key.split('.').filter(|word| *word == "#").count();
    if wildcards > TOPIC_HASH_WILDCARDS_MAX {
        return Err(Refusal::precondition_failed(format!(
            "Topic binding key '{key}' uses {wildcards} '#' wildcards, at most \
             {TOPIC_HASH_WILDCARDS_MAX} are allowed"
        )));
    }
    Ok(())
}

impl Topic {
    pub(super) fn bind(&mut self, binding: &Binding) {
        let mut node = &mut self.root;
        for word in words(binding.routing_key.as_bytes()) {
            node = node.words.entry(word.into()).or_default();
        }
        node.destinations.add(binding.destination);
    }

    pub(super) fn unbind(&mut self, binding: &Binding) {
        let path: Vec<&[u8]> = words(binding.routing_key.as_bytes()).collect();
        remove(&mut self.root, &path, binding.destination);
    }

    pub(super) fn route(&self, routing_key: &[u8], found: &mut dyn FnMut(Destination)) {
        let path: Vec<&[u8]> = words(routing_key).collect();
        walk(&self.root, &path, found);
    }
}

/// The words of a key; the empty key has none.
fn words(key: &[u8]) -> impl Iterator<Item = &[u8]> {
    key.split(|byte| *byte == b'.').filter(move |_| !key.is_empty())
}

/// Follows `path` down; depth is bounded by the words that fit in 255 bytes.
fn walk(node: &Node, path: &[&[u8]], found: &mut dyn FnMut(Destination)) {
    if let Some(rest) = node.words.get(&b"#"[..]) {
        for skipped in 0..=path.len() {
            walk(rest, &path[skipped..], found);
        }
    }
    let Some((word, path)) = path.split_first() else {
        node.destinations.each(found);
        return;
    };
    if *word != b"#"
        && let Some(next) = node.words.get(*word)
    {
        walk(next, path, found);
    }
    if *word != b"*"
        && let Some(next) = node.words.get(&b"*"[..])
    {
        walk(next, path, found);
    }
}

fn remove(node: &mut Node, path: &[&[u8]], destination: Destination) {
    let Some((word, path)) = path.split_first() else {
        node.destinations.remove(destination);
        return;
    };
    if let Some(next) = node.words.get_mut(*word) {
        remove(next, path, destination);
        if next.is_empty() {
            node.words.remove(*word);
        }
    }
}

#[cfg(test)]
mod tests {
    use slotmap::SlotMap;

    use super::super::BindingArguments;
    use super::*;
    use crate::ids::QueueId;

    fn matches(pattern: &str, key: &str) -> bool {
        let queue = SlotMap::<QueueId, ()>::with_key().insert(());
        let binding = Binding {
            destination: Destination::Queue(queue),
            routing_key: pattern.into(),
            arguments: BindingArguments::default(),
        };
        let mut topic = Topic::default();
        topic.bind(&binding);
        let mut found = false;
        topic.route(key.as_bytes(), &mut |_| found = true);
        topic.unbind(&binding);
        assert!(topic.root.is_empty(), "{pattern} leaves nothing behind");
        found
    }

    #[test]
    fn a_star_is_one_word_and_a_hash_is_any_number_of_words() {
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
        ] {
            assert_eq!(matches(pattern, key), expected, "{pattern} matches {key}");
        }
    }

    #[test]
    fn wildcards_in_a_routing_key_are_words() {
        assert!(matches("*", "#"));
        assert!(matches("#", "*"));
        assert!(!matches("a", "*"));
        assert!(!matches("a", "#"));
    }

    #[test]
    fn three_hashes_are_refused() {
        assert!(check_binding("#.a.#").is_ok());
        let refusal = check_binding("#.a.#.b.#").unwrap_err();
        assert_eq!(
            refusal.explanation,
            "Topic binding key '#.a.#.b.#' uses 3 '#' wildcards, at most 2 are allowed"
        );
    }
}
