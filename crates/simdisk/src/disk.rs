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

use crate::inode::Inode;
use crate::random::Random;

type Names = BTreeMap<String, usize>;

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
    /// The files whose syncs do nothing.
    lies_about: Option<fn(&str) -> bool>,
    /// Fails the next sync of a file, and loses some of its sectors.
    fails_sync: Option<Random>,
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
pub struct Disk(Arc<Mutex<State>>);

/// One of its files.
#[derive(Debug)]
pub struct DiskFile {
    disk: Disk,
    inode: usize,
}

impl Disk {
    /// An empty disk.
    #[must_use]
    pub fn new() -> Self {
        let disk = Self::default();
        disk.state().cut_at = u64::MAX;
        disk
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does work, which may use the disk, before each file that is opened from now on.
    pub fn on_open(&self, work: Option<Box<dyn FnMut() + Send>>) {
        self.state().on_open = work.map(OnOpen);
    }

    /// Operations so far that changed the disk.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// The power goes before the operation with this number.
    pub fn cut_power_at(&self, operation: u64) {
        self.state().cut_at = operation;
    }

    /// Only so many bytes more fit.
    pub fn limit_room(&self, more: usize) {
        let used: usize = self.files().iter().map(|(_, len)| len).sum();
        self.state().room = Some(used + more);
    }

    /// There is room again.
    pub fn free_room(&self) {
        self.state().room = None;
    }

    /// Syncs of these files do nothing from now on, as on a disk that lies.
    pub fn lie_about(&self, files: Option<fn(&str) -> bool>) {
        self.state().lies_about = files;
    }

    /// The next sync of a file fails, and some of its sectors are lost.
    pub fn fail_next_sync(&self, random: Random) {
        self.state().fails_sync = Some(random);
    }

    /// The process has ended, and the machine runs on: another process sees all that was written, and a part of the
    /// write that was cut off.
    pub fn after_kill(&self, random: &mut Random) {
        let mut state = self.state();
        state.cut_at = u64::MAX;
        state.inodes.iter_mut().for_each(|inode| inode.after_kill(random));
    }

    /// So many bytes are reserved beyond that.
    pub fn reserve(&self, bytes: usize) {
        self.state().reserve = bytes;
    }

    /// Content of the disk after a power cut.
    pub fn after_cut(&self, random: &mut Random) -> Self {
        let state = self.state();
        let mut names = state.durable_names.clone();
        let happened = random.below(state.changes.len() as u64 + 1);
        let happened = usize::try_from(happened).unwrap_or(usize::MAX);
        for change in state.changes.iter().take(happened) {
            apply(&mut names, change);
        }
        let inodes = state.inodes.iter().map(|inode| inode.after_cut(random)).collect();
        let after = State {
            inodes,
            durable_names: names.clone(),
            names,
            cut_at: u64::MAX,
            lies_about: state.lies_about,
            ..State::default()
        };
        Self(Arc::new(Mutex::new(after)))
    }

    /// A second disk with the content of this one, as if all of it had been synced.
    pub fn copy(&self) -> Self {
        let state = self.state();
        let inodes = state.inodes.iter().map(|inode| Inode::of(inode.current.clone()));
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
    pub fn damage(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.state();
        let inode = state.names[name];
        let mut content = state.inodes[inode].current.clone();
        change(&mut content);
        state.inodes[inode] = Inode::of(content);
    }

    /// Names and lengths of the files.
    pub fn files(&self) -> Vec<(String, usize)> {
        let state = self.state();
        let len = |inode: &usize| state.inodes[*inode].current.len();
        state.names.iter().map(|(name, inode)| (name.clone(), len(inode))).collect()
    }
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
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(current.len());
        let count = bytes.len().min(current.len() - from);
        bytes[..count].copy_from_slice(&current[from..from + count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let powered = state.operate();
        if let Some(room) = state.room {
            let used: usize = state.names.values().map(|at| state.inodes[*at].current.len()).sum();
            let len = state.inodes[self.inode].current.len();
            if used + (offset + bytes.len()).saturating_sub(len) > room {
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        // The write that the power interrupts may have begun; later ones have not.
        if powered.is_ok() || state.operations == state.cut_at + 1 {
            state.inodes[self.inode].write(bytes, offset, powered.is_ok());
        }
        powered
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        state.operate()?;
        if let Some(mut random) = state.fails_sync.take() {
            state.inodes[self.inode].fail_sync(&mut random);
            return Err(io::Error::other("the disk has failed"));
        }
        let lies = state.lies_about.is_some_and(|lies| {
            state.names.iter().any(|(name, inode)| *inode == self.inode && lies(name))
        });
        if !lies {
            state.inodes[self.inode].sync();
        }
        Ok(())
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.operate()?;
        state.inodes[self.inode].shorten(usize::try_from(bytes).unwrap_or(usize::MAX));
        Ok(())
    }

    fn size(&self) -> io::Result<u64> {
        let state = self.disk.state();
        state.powered()?;
        Ok(state.inodes[self.inode].current.len() as u64)
    }
}
