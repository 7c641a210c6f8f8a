//! Topic exchanges: binding keys are words separated by dots, `*` stands for one word, `#` for any number of
//! words including none.
//!
//! Where there are many bindings, their keys form a trie. The keys of few bindings are matched one by one, which takes
//! no memory beside them: each of the 28 exchanges in a ladder of delays has two.

use super::binding::{Binding, Destination};
use super::keys::{Keys, words};
use super::topic_trie::Trie;
use crate::collections::SmallSet;
use crate::limits::TOPIC_HASH_WILDCARDS_MAX;
use crate::refusal::Refusal;

/// Most bindings that are matched one by one.
const FEW: usize = 4;

/// The router of a topic exchange; the exchange has the bindings.
#[derive(Default, Debug)]
pub(super) struct Topic {
    /// The keys of all bindings, if they are many.
    trie: Option<Box<Trie>>,
}

impl Topic {
    /// Adds a binding beside the `others`.
    pub(super) fn bind(&mut self, binding: &Binding, others: &SmallSet<Binding>) {
        if self.trie.is_none() && others.len() == FEW {
            let trie: &mut Trie = self.trie.get_or_insert_default();
            others.iter().for_each(|other| trie.bind(other));
        }
        if let Some(trie) = &mut self.trie {
            trie.bind(binding);
        }
    }

    /// Removes a binding; the `others` remain.
    pub(super) fn unbind(&mut self, binding: &Binding, others: &SmallSet<Binding>) {
        // Half of the bindings have to go, so that one binding does not change the form again and again.
        if others.len() <= FEW / 2 {
            self.trie = None;
        }
        if let Some(trie) = &mut self.trie {
            trie.unbind(binding);
        }
    }

    /// Calls `found` with the destinations of a key.
    pub(super) fn route(
        &self,
        routing_key: &[u8],
        bindings: &SmallSet<Binding>,
        found: &mut dyn FnMut(Destination),
    ) {
        match &self.trie {
            Some(trie) => trie.route(routing_key, found),
            None => {
                let is_of = |binding: &&Binding| matches(&binding.routing_key, routing_key);
                bindings.iter().filter(is_of).for_each(|binding| found(binding.destination));
            }
        }
    }

    /// Calls `found` with the destinations of several keys.
    pub(super) fn route_all(
        &self,
        keys: &mut Keys<'_>,
        bindings: &SmallSet<Binding>,
        found: &mut dyn FnMut(Destination),
    ) {
        match &self.trie {
            Some(trie) => trie.route_all(keys.words(), found),
            None => {
                let is_of = |binding: &&Binding| {
                    keys.list.iter().any(|key| matches(&binding.routing_key, key))
                };
                bindings.iter().filter(is_of).for_each(|binding| found(binding.destination));
            }
        }
    }
}

/// True if a binding key matches a routing key. The words below the last `#` are tried at each word of the routing key:
/// if those between two `#` match at one word, nothing is gained where they match at a later one.
fn matches(binding_key: &str, routing_key: &[u8]) -> bool {
    let (mut pattern, mut key) = (words(binding_key.as_bytes()), words(routing_key));
    // Behind the last `#`: the rest of the binding key, and that of the routing key which it was not tried at.
    let mut behind_any_words = None;
    loop {
        let before = key.clone();
        let is_match = match pattern.next() {
            Some(b"#") => {
                behind_any_words = Some((pattern.clone(), before.clone()));
                key = before;
                continue;
            }
            Some(b"*") => key.next().is_some(),
            Some(wanted) => key.next() == Some(wanted),
            None => match key.next() {
                None => return true,
                Some(_) => false,
            },
        };
        if is_match {
            continue;
        }
        let Some((rest, untried)) = &mut behind_any_words else { return false };
        if untried.next().is_none() {
            return false;
        }
        (pattern, key) = (rest.clone(), untried.clone());
    }
}

/// Refuses binding keys with more than two `#` (RabbitMQ 4.3.5 and later).
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use slotmap::SlotMap;

    use super::super::binding::BindingArguments;
    use super::*;
    use crate::ids::QueueId;

    fn destinations(topic: &Topic, bindings: &SmallSet<Binding>, key: &str) -> Vec<Destination> {
        let mut found = Vec::new();
        topic.route(key.as_bytes(), bindings, &mut |destination| found.push(destination));
        found.sort_unstable();
        found
    }

    proptest! {
        #[test]
        fn few_bindings_match_as_many_do(
            steps in prop::collection::vec(("[ab*#](\\.[ab*#]){0,5}", any::<bool>()), 1..40),
            keys in prop::collection::vec("[abc]?(\\.[ab]){0,6}", 1..20),
        ) {
            let mut queues = SlotMap::<QueueId, ()>::with_key();
            let (mut topic, mut trie) = (Topic::default(), Trie::default());
            let mut bindings: SmallSet<Binding> = SmallSet::default();
            let all: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
            for (pattern, is_added) in steps {
                let first = bindings.first().cloned();
                match first {
                    Some(gone) if !is_added => {
                        bindings.remove(&gone);
                        topic.unbind(&gone, &bindings);
                        trie.unbind(&gone);
                    }
                    _ => {
                        let binding = Binding {
                            destination: Destination::Queue(queues.insert(())),
                            routing_key: pattern.as_str().into(),
                            arguments: BindingArguments::default(),
                        };
                        topic.bind(&binding, &bindings);
                        trie.bind(&binding);
                        bindings.insert(binding);
                    }
                }
                prop_assert!(bindings.len() <= FEW || topic.trie.is_some());
                prop_assert!(bindings.len() > FEW / 2 || topic.trie.is_none());
                for key in &keys {
                    let mut expected = Vec::new();
                    trie.route(key.as_bytes(), &mut |destination| expected.push(destination));
                    expected.sort_unstable();
                    prop_assert_eq!(destinations(&topic, &bindings, key), expected, "{}", key);
                }
                let (mut together, mut expected) = (Vec::new(), Vec::new());
                let mut distinct = Keys::new(all.iter().copied());
                topic.route_all(&mut distinct, &bindings, &mut |found| together.push(found));
                trie.route_all(distinct.words(), &mut |found| expected.push(found));
                together.sort_unstable();
                expected.sort_unstable();
                prop_assert_eq!(together, expected);
            }
        }
    }

    #[test]
    fn wildcards_match_any_number_of_words() {
        let of_ladder = format!("{}1.#", "*.".repeat(20));
        for (pattern, key, expected) in [
            ("#.b.#", "a.b.c", true),
            ("#.b.#", "a.c", false),
            ("#.a.#.b", "x.a.y.a.b", true),
            ("#.a.#.b", "a.b.a", false),
            ("#.a.b.#.c", "a.a.b.c", true),
            ("#.*.#", "", false),
            ("#.*", "a", true),
            ("*.#", "", false),
            ("#", "", true),
            ("", "", true),
            ("", "a", false),
            ("a..b", "a..b", true),
            ("*", "#", true),
            ("a", "*", false),
            (&of_ladder, "0.1.0.1.0.1.0.1.0.1.0.1.0.1.0.1.0.1.0.1.1.0.q", true),
            (&of_ladder, "0.1.0.1.0.1.0.1.0.1.0.1.0.1.0.1.0.1.0.1.0.1.q", false),
        ] {
            assert_eq!(matches(pattern, key.as_bytes()), expected, "{pattern} matches {key}");
        }
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
