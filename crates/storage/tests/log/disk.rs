//! A directory in memory whose power can be cut.
//!
//! What was written and not synced may be on the disk or not after a cut, sector by sector; renames,
//! creations and removals that were not synced have happened up to some point, in order. A cut is
//! planned by the number of the operation that does not happen any more; from then on everything
//! fails.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use storage::{Directory, DirectoryFile};

const SECTOR: usize = 512;

/// A generator that is the same everywhere.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }
}

type Names = BTreeMap<String, usize>;

#[derive(Clone, Default, Debug)]
struct Inode {
    durable: Vec<u8>,
    /// Content that reads see.
    current: Vec<u8>,
    /// Writes since the last sync, and the length the file had then.
    unsynced: Vec<(usize, Vec<u8>)>,
    /// The length to which it was shortened since the last sync; nothing is written then any more.
    shortened: Option<usize>,
}

#[derive(Clone, Debug)]
enum Change {
    Add(String, usize),
    Remove(String),
    Rename(String, String),
}

#[derive(Default, Debug)]
struct State {
    inodes: Vec<Inode>,
    names: Names,
    durable_names: Names,
    changes: Vec<Change>,
    operations: u64,
    /// The operation at which the power goes.
    cut_at: u64,
    /// Bytes that files may have in all; none without a limit.
    room: Option<usize>,
    /// Bytes that are given back when there is no room.
    reserve: usize,
    on_open: Option<OnOpen>,
}

/// Work that is done before a file is opened.
struct OnOpen(Box<dyn FnMut() + Send>);

impl std::fmt::Debug for OnOpen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OnOpen")
    }
}

impl State {
    /// Counts an operation that changes the disk; fails when there is no power.
    fn operate(&mut self) -> io::Result<()> {
        self.operations += 1;
        if self.operations > self.cut_at {
            return Err(io::Error::other("no power"));
        }
        Ok(())
    }

    fn powered(&self) -> io::Result<()> {
        if self.operations > self.cut_at { Err(io::Error::other("no power")) } else { Ok(()) }
    }
}

fn apply(names: &mut Names, change: &Change) {
    match change {
        Change::Add(name, inode) => {
            names.insert(name.clone(), *inode);
        }
        Change::Remove(name) => {
            names.remove(name);
        }
        Change::Rename(from, to) => {
            if let Some(inode) = names.remove(from) {
                names.insert(to.clone(), inode);
            }
        }
    }
}

/// The directory.
#[derive(Clone, Default, Debug)]
pub(crate) struct Disk(Arc<Mutex<State>>);

/// One of its files.
#[derive(Debug)]
pub(crate) struct DiskFile {
    disk: Disk,
    inode: usize,
}

impl Disk {
    pub(crate) fn new() -> Self {
        let disk = Self::default();
        disk.state().cut_at = u64::MAX;
        disk
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does work, which may use the disk, before each file that is opened from now on.
    pub(crate) fn on_open(&self, work: Option<Box<dyn FnMut() + Send>>) {
        self.state().on_open = work.map(OnOpen);
    }

    /// Operations so far that changed the disk.
    pub(crate) fn operations(&self) -> u64 {
        self.state().operations
    }

    /// The power goes before the operation with this number.
    pub(crate) fn cut_power_at(&self, operation: u64) {
        self.state().cut_at = operation;
    }

    /// Only so many bytes more fit.
    pub(crate) fn limit_room(&self, more: usize) {
        let used: usize = self.files().iter().map(|(_, len)| len).sum();
        self.state().room = Some(used + more);
    }

    /// So many bytes are reserved beyond that.
    pub(crate) fn reserve(&self, bytes: usize) {
        self.state().reserve = bytes;
    }

    /// Content of the disk after a power cut.
    pub(crate) fn after_cut(&self, random: &mut Random) -> Self {
        let state = self.state();
        let mut names = state.durable_names.clone();
        let happened = random.below(state.changes.len() as u64 + 1);
        for change in state.changes.iter().take(usize::try_from(happened).unwrap()) {
            apply(&mut names, change);
        }
        let inodes = state.inodes.iter().map(|inode| after_cut(inode, random)).collect();
        let after = State {
            inodes,
            durable_names: names.clone(),
            names,
            cut_at: u64::MAX,
            ..State::default()
        };
        Self(Arc::new(Mutex::new(after)))
    }

    /// A second disk with the content of this one, as if all of it had been synced.
    pub(crate) fn copy(&self) -> Self {
        let state = self.state();
        let inodes = state.inodes.iter().map(|inode| Inode {
            durable: inode.current.clone(),
            current: inode.current.clone(),
            ..Inode::default()
        });
        let copy = State {
            inodes: inodes.collect(),
            names: state.names.clone(),
            durable_names: state.names.clone(),
            cut_at: u64::MAX,
            ..State::default()
        };
        Self(Arc::new(Mutex::new(copy)))
    }

    /// Changes bytes of a file without a write.
    pub(crate) fn damage(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.state();
        let inode = state.names[name];
        change(&mut state.inodes[inode].current);
        state.inodes[inode].durable = state.inodes[inode].current.clone();
    }

    /// Names and lengths of the files.
    pub(crate) fn files(&self) -> Vec<(String, usize)> {
        let state = self.state();
        let len = |inode: &usize| state.inodes[*inode].current.len();
        state.names.iter().map(|(name, inode)| (name.clone(), len(inode))).collect()
    }
}

fn after_cut(inode: &Inode, random: &mut Random) -> Inode {
    let mut bytes = inode.durable.clone();
    for (offset, written) in &inode.unsynced {
        // All of it, nothing of it, or some of its sectors.
        let fate = random.below(3);
        let mut at = 0;
        while at < written.len() {
            let absolute = offset + at;
            let len = (SECTOR - absolute % SECTOR).min(written.len() - at);
            if fate == 0 || fate == 1 && random.below(2) == 0 {
                let end = absolute + len;
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[absolute..end].copy_from_slice(&written[at..at + len]);
            }
            at += len;
        }
    }
    if let Some(len) = inode.shortened
        && random.below(2) == 0
    {
        bytes.truncate(len);
    }
    Inode { durable: bytes.clone(), current: bytes, ..Inode::default() }
}

impl Directory for Disk {
    type File = DiskFile;

    fn create(&self, name: &str) -> io::Result<DiskFile> {
        let mut state = self.state();
        state.operate()?;
        if state.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = state.inodes.len();
        state.inodes.push(Inode::default());
        state.names.insert(name.to_owned(), inode);
        state.changes.push(Change::Add(name.to_owned(), inode));
        Ok(DiskFile { disk: self.clone(), inode })
    }

    fn open(&self, name: &str) -> io::Result<DiskFile> {
        let on_open = self.state().on_open.take();
        if let Some(mut on_open) = on_open {
            on_open.0();
            self.state().on_open = Some(on_open);
        }
        let state = self.state();
        state.powered()?;
        let inode = *state.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(DiskFile { disk: self.clone(), inode })
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let state = self.state();
        state.powered()?;
        Ok(state.names.keys().cloned().collect())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        state.operate()?;
        let change = Change::Rename(from.to_owned(), to.to_owned());
        apply(&mut state.names, &change);
        state.changes.push(change);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        if !state.names.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.operate()?;
        let change = Change::Remove(name.to_owned());
        apply(&mut state.names, &change);
        state.changes.push(change);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state();
        state.operate()?;
        state.durable_names = state.names.clone();
        state.changes.clear();
        Ok(())
    }

    fn make_room(&self) -> bool {
        let mut state = self.state();
        let reserve = std::mem::take(&mut state.reserve);
        state.room = state.room.map(|room| room + reserve);
        reserve > 0
    }
}

impl DirectoryFile for DiskFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.disk.state();
        state.powered()?;
        let current = &state.inodes[self.inode].current;
        let from = usize::try_from(offset).unwrap().min(current.len());
        let count = bytes.len().min(current.len() - from);
        bytes[..count].copy_from_slice(&current[from..from + count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        let offset = usize::try_from(offset).unwrap();
        let powered = state.operate();
        let used: usize = state.names.values().map(|at| state.inodes[*at].current.len()).sum();
        let grows = (offset + bytes.len()).saturating_sub(state.inodes[self.inode].current.len());
        if state.room.is_some_and(|room| used + grows > room) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let inode = &mut state.inodes[self.inode];
        // The write that the power interrupts may have begun.
        inode.unsynced.push((offset, bytes.to_vec()));
        powered?;
        let end = offset + bytes.len();
        if inode.current.len() < end {
            inode.current.resize(end, 0);
        }
        inode.current[offset..end].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        state.operate()?;
        let inode = &mut state.inodes[self.inode];
        inode.durable = inode.current.clone();
        inode.unsynced.clear();
        inode.shortened = None;
        Ok(())
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.operate()?;
        let inode = &mut state.inodes[self.inode];
        let len = usize::try_from(bytes).unwrap().min(inode.current.len());
        inode.current.truncate(len);
        inode.shortened = Some(len);
        Ok(())
    }

    fn size(&self) -> io::Result<u64> {
        let state = self.disk.state();
        state.powered()?;
        Ok(state.inodes[self.inode].current.len() as u64)
    }
}
