//! The pages of many messages by the numbers of the messages, in about four bytes for each.

use std::collections::BTreeMap;

/// Numbers that share a chunk: 2^8.
const CHUNK_BITS: u32 = 8;

/// Messages from which on a chunk has a place for every number.
const DENSE_FROM: usize = 48;

/// Messages down to which such a chunk keeps these places.
const SPARSE_FROM: usize = 16;

/// The mark of a number without a page.
const NONE: u32 = u32::MAX;

/// The pages of the messages with consecutive numbers.
#[derive(Debug)]
enum Chunk {
    /// Pairs of the low bits of a number and its page, in order.
    Sparse(Vec<(u8, u32)>),
    /// The page of each number, and the count of pages.
    Dense(Box<[u32; 1 << CHUNK_BITS]>, usize),
}

/// The page of each message by its number.
#[derive(Default, Debug)]
pub(crate) struct PageIndex {
    chunks: BTreeMap<u64, Chunk>,
}

fn parts(seq: u64) -> (u64, u8) {
    (seq >> CHUNK_BITS, u8::try_from(seq & 0xff).expect("eight bits are a byte"))
}

impl PageIndex {
    pub(crate) const fn new() -> Self {
        Self { chunks: BTreeMap::new() }
    }

    /// The page of a message.
    pub(crate) fn get(&self, seq: u64) -> Option<u32> {
        let (chunk, low) = parts(seq);
        match self.chunks.get(&chunk)? {
            Chunk::Sparse(pages) => {
                let at = pages.binary_search_by_key(&low, |(low, _)| *low).ok()?;
                Some(pages[at].1)
            }
            Chunk::Dense(pages, _) => Some(pages[usize::from(low)]).filter(|page| *page != NONE),
        }
    }

    /// Notes the page of a message that is in no page.
    pub(crate) fn insert(&mut self, seq: u64, page: u32) {
        let (chunk, low) = parts(seq);
        let chunk = self.chunks.entry(chunk).or_insert_with(|| Chunk::Sparse(Vec::new()));
        match chunk {
            Chunk::Sparse(pages) => {
                let at = pages.partition_point(|(other, _)| *other < low);
                pages.insert(at, (low, page));
                if pages.len() >= DENSE_FROM {
                    let mut dense = Box::new([NONE; 1 << CHUNK_BITS]);
                    pages.iter().for_each(|(low, page)| dense[usize::from(*low)] = *page);
                    *chunk = Chunk::Dense(dense, pages.len());
                }
            }
            Chunk::Dense(pages, count) => {
                pages[usize::from(low)] = page;
                *count += 1;
            }
        }
    }

    /// Forgets a message that is in a page.
    pub(crate) fn remove(&mut self, seq: u64) {
        let (number, low) = parts(seq);
        let chunk = self.chunks.get_mut(&number).expect("the message is in a page");
        let left = match chunk {
            Chunk::Sparse(pages) => {
                let at = pages.binary_search_by_key(&low, |(low, _)| *low);
                pages.remove(at.expect("the message is in a page"));
                pages.len()
            }
            Chunk::Dense(pages, count) => {
                pages[usize::from(low)] = NONE;
                *count -= 1;
                let left = *count;
                if left <= SPARSE_FROM {
                    let known = (0..=u8::MAX).zip(pages.iter().copied());
                    *chunk = Chunk::Sparse(known.filter(|(_, page)| *page != NONE).collect());
                }
                left
            }
        };
        if left == 0 {
            self.chunks.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn index_is_a_map(
            steps in prop::collection::vec((any::<bool>(), 0_u64..600, 0_u32..50), 0..2000),
        ) {
            let mut index = PageIndex::new();
            let mut model = BTreeMap::new();
            for (adds, seq, page) in steps {
                match (adds, model.contains_key(&seq)) {
                    (true, false) => {
                        index.insert(seq, page);
                        model.insert(seq, page);
                    }
                    (false, true) => {
                        index.remove(seq);
                        model.remove(&seq);
                    }
                    _ => {}
                }
                prop_assert_eq!(index.get(seq), model.get(&seq).copied());
            }
            for seq in 0..700 {
                prop_assert_eq!(index.get(seq), model.get(&seq).copied(), "{}", seq);
            }
            prop_assert_eq!(index.chunks.is_empty(), model.is_empty());
        }
    }
}
