//! The distinct keys of a message (routing key, `CC` and `BCC`), prepared for routers.
//!
//! A topic exchange may have to match thousands of keys against a trie in which any node can match each of
//! them. One walk does all of it: a node is visited once, with the set of all key positions that lead to the
//! node. The work grows with the trie, and hardly with the number of keys.

use std::collections::BTreeMap;

use smallvec::SmallVec;

/// Distinct keys; the first is the routing key.
#[derive(Debug)]
pub(crate) struct Keys<'a> {
    pub(crate) list: SmallVec<[&'a [u8]; 4]>,
    words: Option<Words<'a>>,
}

impl<'a> Keys<'a> {
    /// The keys of a message, the routing key first.
    pub(crate) fn new(keys: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut list: SmallVec<[&'a [u8]; 4]> = keys.collect();
        if let Some((first, others)) = list.split_first_mut()
            && !others.is_empty()
        {
            let first = *first;
            others.sort_unstable();
            list.dedup();
            let mut is_first = true;
            list.retain(|key| std::mem::replace(&mut is_first, false) || **key != *first);
        }
        Self { list, words: None }
    }

    /// The routing key.
    pub(crate) fn first(&self) -> &'a [u8] {
        self.list.first().expect("a message has a routing key")
    }

    /// True if `key` is one of the keys.
    pub(super) fn contains(&self, key: &[u8]) -> bool {
        self.list
            .split_first()
            .is_some_and(|(first, others)| **first == *key || others.binary_search(&key).is_ok())
    }

    /// The words of the keys, split on the first call.
    pub(super) fn words(&mut self) -> &Words<'a> {
        let Self { list, words } = self;
        words.get_or_insert_with(|| Words::new(list))
    }
}

/// The words of several keys. A position is a key together with the number of its words already consumed.
#[derive(Debug)]
pub(super) struct Words<'a> {
    /// The number of keys, and the number of 64-bit words in a row of one bit per key.
    keys: usize,
    row_len: usize,
    /// The number of the word at each position, indexed by words already consumed, then by key.
    next: Vec<Option<usize>>,
    /// The keys that end at each depth, row by row.
    ends: Vec<u64>,
    texts: Vec<&'a [u8]>,
    numbers: BTreeMap<&'a [u8], usize>,
    /// For each distinct word, the depths where the word occurs, ascending, and the keys that have it there.
    places: Vec<Vec<(usize, InKeys)>>,
}

/// A subset of the keys.
#[derive(Debug)]
enum InKeys {
    /// A list, used where a list is shorter than a row.
    Few(Vec<usize>),
    Many(Vec<u64>),
}

impl InKeys {
    fn new(list: Vec<usize>, row_len: usize) -> Self {
        if list.len() <= row_len {
            return Self::Few(list);
        }
        let mut row = vec![0; row_len];
        list.into_iter().for_each(|key| row[key / 64] |= 1 << (key % 64));
        Self::Many(row)
    }

    /// Adds the keys that are also in `row` to `to`.
    fn intersect(&self, row: &[u64], to: &mut [u64]) {
        match self {
            Self::Few(list) => {
                for key in list {
                    to[key / 64] |= row[key / 64] & 1 << (key % 64);
                }
            }
            Self::Many(keys) => {
                let both = row.iter().zip(keys).map(|(row, keys)| row & keys);
                to.iter_mut().zip(both).for_each(|(to, both)| *to |= both);
            }
        }
    }
}

/// A set of positions: rows of keys, one for each depth from `depth` on.
#[derive(Clone, Debug)]
pub(super) struct Positions {
    depth: usize,
    rows: Vec<u64>,
}

impl<'a> Words<'a> {
    pub(super) fn new(keys: &[&'a [u8]]) -> Self {
        let row_len = keys.len().div_ceil(64);
        let mut texts = Vec::new();
        let mut numbers = BTreeMap::new();
        let mut next = Vec::new();
        let mut places: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for (key, text) in keys.iter().enumerate() {
            for (depth, word) in words(text).enumerate() {
                let number = *numbers.entry(word).or_insert_with(|| {
                    texts.push(word);
                    texts.len() - 1
                });
                if next.len() < (depth + 1) * keys.len() {
                    next.resize((depth + 1) * keys.len(), None);
                }
                next[depth * keys.len() + key] = Some(number);
                places.entry((number, depth)).or_default().push(key);
            }
        }
        let depths = next.len() / keys.len().max(1);
        let mut ends = vec![0; (depths + 1) * row_len];
        for (key, text) in keys.iter().enumerate() {
            let depth = words(text).count();
            ends[depth * row_len + key / 64] |= 1 << (key % 64);
        }
        let mut by_word: Vec<Vec<(usize, InKeys)>> = texts.iter().map(|_| Vec::new()).collect();
        for ((number, depth), list) in places {
            by_word[number].push((depth, InKeys::new(list, row_len)));
        }
        Words { keys: keys.len(), row_len, next, ends, texts, numbers, places: by_word }
    }

    /// The first position of every key.
    pub(super) fn starts(&self) -> Positions {
        let row = |at: usize| match self.keys - at * 64 {
            64.. => u64::MAX,
            left => (1 << left) - 1,
        };
        Positions { depth: 0, rows: (0..self.row_len).map(row).collect() }
    }

    fn ends_from<'b>(&'b self, set: &Positions) -> impl Iterator<Item = &'b u64> + use<'a, 'b> {
        self.ends.iter().skip(set.depth * self.row_len)
    }

    /// True if a key ends at a position of this set.
    pub(super) fn ends_in(&self, set: &Positions) -> bool {
        set.rows.iter().zip(self.ends_from(set)).any(|(row, ends)| row & ends != 0)
    }

    /// Number of words at the positions of a set; repeated words count each time.
    pub(super) fn count_in(&self, set: &Positions) -> usize {
        let words = set.rows.iter().zip(self.ends_from(set));
        words.map(|(row, ends)| (row & !ends).count_ones()).sum::<u32>() as usize
    }

    /// The text of the word with this number.
    pub(super) fn text(&self, number: usize) -> &'a [u8] {
        self.texts[number]
    }

    /// The number of a word, if a key contains the word.
    pub(super) fn number(&self, word: &[u8]) -> Option<usize> {
        self.numbers.get(word).copied()
    }

    /// The distinct words at the positions of a set.
    pub(super) fn numbers_in(&self, set: &Positions) -> Vec<usize> {
        let mut numbers = Vec::new();
        for (at, bits) in set.rows.iter().enumerate() {
            let depth = set.depth + at / self.row_len;
            let mut bits = *bits;
            while bits != 0 {
                let key = at % self.row_len * 64 + bits.trailing_zeros() as usize;
                numbers.extend(self.next.get(depth * self.keys + key).copied().flatten());
                bits &= bits - 1;
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// The positions one word further on, for any word; none if the set has no further words.
    pub(super) fn behind_any_word(&self, set: &Positions) -> Option<Positions> {
        let rows = set.rows.iter().zip(self.ends_from(set)).map(|(row, ends)| row & !ends);
        self.trimmed(Positions { depth: set.depth + 1, rows: rows.collect() })
    }

    /// The positions one word further on, for this word; none if the word occurs at no position of the set.
    pub(super) fn behind_word(&self, set: &Positions, number: usize) -> Option<Positions> {
        let places = self.places.get(number)?;
        let rows = set.rows.chunks_exact(self.row_len);
        let mut behind = Positions { depth: set.depth + 1, rows: vec![0; set.rows.len()] };
        let last = set.depth + rows.len();
        let first = places.partition_point(|(depth, _)| *depth < set.depth);
        for (depth, keys) in places.iter().skip(first).take_while(|(depth, _)| *depth < last) {
            let from = (depth - set.depth) * self.row_len;
            let row = from..from + self.row_len;
            keys.intersect(&set.rows[row.clone()], &mut behind.rows[row]);
        }
        self.trimmed(behind)
    }

    /// The positions after any number of further words, including none.
    pub(super) fn behind_any_words(&self, set: &Positions) -> Positions {
        let mut behind = set.clone();
        let mut at = 0;
        // Each row adds the positions that advance by one word to the next row.
        loop {
            let ends = self.ends.iter().skip((set.depth + at) * self.row_len);
            let row = &behind.rows[at * self.row_len..][..self.row_len];
            let on: SmallVec<[u64; 32]> =
                row.iter().zip(ends).map(|(row, ends)| row & !ends).collect();
            at += 1;
            let is_last = behind.rows.len() == at * self.row_len;
            if is_last && on.iter().all(|bits| *bits == 0) {
                return behind;
            }
            if is_last {
                behind.rows.resize((at + 1) * self.row_len, 0);
            }
            let next = &mut behind.rows[at * self.row_len..][..self.row_len];
            next.iter_mut().zip(on).for_each(|(next, on)| *next |= on);
        }
    }

    /// Drops empty rows at both ends; none if all rows are empty.
    fn trimmed(&self, mut set: Positions) -> Option<Positions> {
        let first = set.rows.iter().position(|bits| *bits != 0)? / self.row_len;
        let last = set.rows.iter().rposition(|bits| *bits != 0)? / self.row_len;
        set.rows.truncate((last + 1) * self.row_len);
        set.rows.drain(..first * self.row_len);
        set.depth += first;
        Some(set)
    }
}

/// The words of a key; the empty key has none.
pub(super) fn words(key: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    key.split(|byte| *byte == b'.').filter(move |_| !key.is_empty())
}
