//! A change to a file of a log, not made by the log.

use arbitrary::{Arbitrary, Result, Unstructured};
use storage::Directory as _;

use simdisk::Disk;

/// Longest run of bytes that one change is about.
const RUN_MAX: usize = 4096;

/// A change of a file.
#[derive(Clone, Debug)]
pub(super) struct Change {
    file: u8,
    offset: u16,
    how: How,
}

#[derive(Clone, Debug)]
enum How {
    Flip(u8),
    Fill { byte: u8, len: u16 },
    Cut,
    Insert { byte: u8, len: u16 },
    Remove { len: u16 },
    Write(Vec<u8>),
    Lose,
    Copy { from: u8 },
}

impl<'a> Arbitrary<'a> for Change {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let (kind, file): (u8, u8) = (u.arbitrary()?, u.arbitrary()?);
        let offset = u.arbitrary()?;
        let how = match kind % 8 {
            0 => How::Flip(u.arbitrary()?),
            1 => How::Fill { byte: u.arbitrary()?, len: u.arbitrary()? },
            2 => How::Cut,
            3 => How::Insert { byte: u.arbitrary()?, len: u.arbitrary()? },
            4 => How::Remove { len: u.arbitrary()? },
            5 => {
                let len = usize::from(u.arbitrary::<u8>()?).min(u.len());
                How::Write(u.bytes(len)?.to_vec())
            }
            6 => How::Lose,
            _ => How::Copy { from: u.arbitrary()? },
        };
        Ok(Self { file, offset, how })
    }
}

impl Change {
    /// Makes the change; in which of the files, and from which byte on.
    pub(super) fn make(self, disk: &Disk, files: &[String]) -> (usize, usize) {
        let file = usize::from(self.file) % files.len();
        let there: Vec<(String, usize)> = disk.files();
        let Some((name, len)) = there.iter().find(|(name, _)| *name == files[file]) else {
            return (file, 0);
        };
        let at = usize::from(self.offset) % (len + 1);
        let run = |len: u16| usize::from(len) % RUN_MAX;
        match self.how {
            How::Flip(bits) => disk.damage(name, |bytes| {
                bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= bits);
            }),
            How::Fill { byte, len } => disk.damage(name, |bytes| {
                bytes.iter_mut().skip(at).take(run(len)).for_each(|old| *old = byte);
            }),
            How::Cut => disk.damage(name, |bytes| bytes.truncate(at)),
            How::Insert { byte, len } => disk.damage(name, |bytes| {
                bytes.splice(at..at, std::iter::repeat_n(byte, run(len)));
            }),
            How::Remove { len } => disk.damage(name, |bytes| {
                let end = bytes.len().min(at + run(len));
                bytes.drain(at..end);
            }),
            How::Write(new) => disk.damage(name, |bytes| {
                bytes.resize(bytes.len().max(at + new.len()), 0);
                bytes[at..at + new.len()].copy_from_slice(&new);
            }),
            How::Lose => {
                disk.remove(name).expect("a disk with power");
                return (file, 0);
            }
            How::Copy { from } => {
                let (other, _) = &there[usize::from(from) % there.len()];
                let mut copied = Vec::new();
                disk.damage(other, |bytes| copied.clone_from(bytes));
                disk.damage(name, |bytes| *bytes = copied);
                return (file, 0);
            }
        }
        (file, at)
    }
}
