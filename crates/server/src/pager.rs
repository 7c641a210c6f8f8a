//! The one thread that writes and reads pages: what of long queues waits on disk.
//!
//! It does the tasks of each vhost in their order, without its lock, and hands over what was read. A
//! page that cannot be read ends the process: what is durable in it comes back from the log.

use std::io;
use std::sync::Arc;

use broker::Lsn;
use broker::page::PageTask;
use parking_lot::{Condvar, Mutex};

use crate::limits::EXIT_DISK;
use crate::vhosts::VhostCell;

#[derive(Default, Debug)]
struct Work {
    /// Vhosts with something to do.
    dirty: Vec<Arc<VhostCell>>,
    stopping: bool,
}

/// Wakes the thread.
#[derive(Default, Debug)]
pub(crate) struct Pager {
    work: Mutex<Work>,
    changed: Condvar,
    /// Held while the tasks of a vhost are done.
    busy: Mutex<()>,
}

impl Pager {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(crate) fn start() -> io::Result<Arc<Self>> {
        let pager = Arc::new(Self::default());
        let runs = Arc::clone(&pager);
        std::thread::Builder::new().name("pager".to_owned()).spawn(move || runs.run())?;
        Ok(pager)
    }

    /// There is something to do for a vhost; told once until it has been taken.
    pub(crate) fn wake(&self, cell: Arc<VhostCell>) {
        self.work.lock().dirty.push(cell);
        self.changed.notify_one();
    }

    /// Waits until the tasks that were taken so far of some vhost are done.
    pub(crate) fn finish(&self) {
        drop(self.busy.lock());
    }

    /// Ends the thread: what waits in pages means nothing to the next process.
    pub(crate) fn stop(&self) {
        self.work.lock().stopping = true;
        self.changed.notify_one();
    }

    fn run(&self) {
        loop {
            let cells = {
                let mut work = self.work.lock();
                while work.dirty.is_empty() && !work.stopping {
                    self.changed.wait(&mut work);
                }
                if work.stopping {
                    return;
                }
                std::mem::take(&mut work.dirty)
            };
            for cell in cells {
                let _busy = self.busy.lock();
                for task in cell.take_page_tasks() {
                    perform(&cell, task);
                }
            }
        }
    }
}

fn perform(cell: &VhostCell, task: PageTask) {
    let shelf = cell.shelf();
    match task {
        PageTask::Write { page, messages } => {
            let bytes = messages.iter().map(|message| message.message.delivery_bytes()).sum();
            shelf.write(page, messages);
            cell.page_written(bytes);
        }
        PageTask::Read { at, wanted } => match shelf.read(at.page, wanted) {
            Ok(read) => cell.page_read(at, read),
            Err(problem) => end(cell, &problem),
        },
        PageTask::Drop { page, ended } => {
            if let Some(held) = ended {
                let facts = shelf.facts(page).unwrap_or_else(|problem| end(cell, &problem));
                let left = facts.into_iter().filter(|facts| held.contains(facts.seq));
                let lsns = left.map(|facts| facts.lsn).filter(|lsn| *lsn != Lsn(0));
                cell.page_ended(lsns);
            }
            shelf.remove(page);
        }
    }
}

fn end(cell: &VhostCell, problem: &str) -> ! {
    tracing::error!(
        vhost = cell.name(),
        "messages that wait on disk cannot be read: {problem}; the broker ends, and what is durable \
         comes back from the log"
    );
    std::process::exit(EXIT_DISK);
}
