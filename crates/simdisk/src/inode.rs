//! The content of a file: what reads see, and what a power cut leaves.

use crate::random::Random;

const SECTOR: usize = 512;

/// The content of a file.
#[derive(Clone, Default, Debug)]
pub(crate) struct Inode {
    durable: Vec<u8>,
    /// Content that reads see.
    pub(crate) current: Vec<u8>,
    /// Writes since the last sync.
    unsynced: Vec<(usize, Vec<u8>)>,
    /// The length to which it was shortened since the last sync; nothing is written then any more.
    shortened: Option<usize>,
    /// True if the last of `unsynced` was cut off: reads do not see it.
    is_interrupted: bool,
}

/// Puts bytes at an offset.
fn put(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    if content.len() < offset {
        content.resize(offset, 0);
    }
    let (over, behind) = bytes.split_at(bytes.len().min(content.len() - offset));
    content[offset..offset + over.len()].copy_from_slice(over);
    content.extend_from_slice(behind);
}

/// The sectors of a write, each with its offset in the write.
fn sectors(offset: usize, len: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let from = at;
        at += (SECTOR - (offset + from) % SECTOR).min(len - from);
        (from < len).then_some((from, at))
    })
}

impl Inode {
    /// A file with this content, all of it durable.
    pub(crate) fn of(content: Vec<u8>) -> Self {
        Self { durable: content.clone(), current: content, ..Self::default() }
    }

    /// Writes; without power, the write may have begun.
    pub(crate) fn write(&mut self, bytes: &[u8], offset: usize, has_power: bool) {
        self.unsynced.push((offset, bytes.to_vec()));
        self.is_interrupted = !has_power;
        if has_power {
            put(&mut self.current, offset, bytes);
        }
    }

    pub(crate) fn shorten(&mut self, len: usize) {
        let len = len.min(self.current.len());
        self.current.truncate(len);
        self.shortened = Some(len);
    }

    /// Makes the content durable.
    pub(crate) fn sync(&mut self) {
        let writes = std::mem::take(&mut self.unsynced);
        match self.shortened.take() {
            Some(_) => self.durable.clone_from(&self.current),
            None => {
                for (at, bytes) in writes {
                    if self.durable.is_empty() && at == 0 {
                        self.durable = bytes;
                    } else {
                        put(&mut self.durable, at, &bytes);
                    }
                }
            }
        }
    }

    /// Fails to make the content durable: some sectors are lost, for readers as well; the others may be durable.
    pub(crate) fn fail_sync(&mut self, random: &mut Random) {
        *self = self.after_cut(random);
    }

    /// The file after the end of the process, while the machine runs on: reads see all that was written; a write that
    /// was cut off has begun.
    pub(crate) fn after_kill(&mut self, random: &mut Random) {
        if !std::mem::take(&mut self.is_interrupted) {
            return;
        }
        if let Some((offset, mut bytes)) = self.unsynced.pop() {
            let len = usize::try_from(random.below(bytes.len() as u64 + 1)).unwrap_or(0);
            bytes.truncate(len);
            put(&mut self.current, offset, &bytes);
            self.unsynced.push((offset, bytes));
        }
    }

    /// The file after a power cut.
    pub(crate) fn after_cut(&self, random: &mut Random) -> Self {
        let mut bytes = self.durable.clone();
        for (offset, written) in &self.unsynced {
            // All of it, nothing of it, or some of its sectors.
            let fate = random.below(3);
            for (from, to) in sectors(*offset, written.len()) {
                if fate == 0 || fate == 1 && random.below(2) == 0 {
                    put(&mut bytes, offset + from, &written[from..to]);
                }
            }
        }
        if let Some(len) = self.shortened
            && random.below(2) == 0
        {
            bytes.truncate(len);
        }
        Self::of(bytes)
    }
}
