//! Replay of a long log on a thread of its own: the thread that reads the log decodes its records, and another applies
//! them. A short log is applied by the thread that reads it.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

use broker::Envelopes;
use replica::DecodedRecord;
use storage::{Lsn, Record, RecordSink, References};

use crate::disk::recovery::pages::LogReplay;
use crate::limits::{RESTORE_BATCH_RECORDS, RESTORE_BATCHES_MAX};

/// A replay, and the receiver of the problems of single records.
struct Target<'a> {
    replay: &'a mut LogReplay,
    problem: &'a mut (dyn FnMut(Lsn, String) + Send),
}

impl Target<'_> {
    /// Applies records; calls `ended` with each record of which a reference ended.
    fn apply(&mut self, records: Vec<DecodedRecord>, ended: &mut dyn FnMut(Lsn)) {
        for record in records {
            let lsn = record.lsn;
            if let Err(problem) = self.replay.apply_decoded(record, ended) {
                (self.problem)(lsn, problem);
            }
        }
    }
}

/// The thread that applies records.
struct ApplyThread<'scope> {
    batches: SyncSender<Vec<DecodedRecord>>,
    /// Records of which references ended: at most those of the messages that the records in flight end.
    ended: Receiver<Vec<Lsn>>,
    handle: ScopedJoinHandle<'scope, ()>,
}

fn run(mut target: Target<'_>, batches: &Receiver<Vec<DecodedRecord>>, ended: &Sender<Vec<Lsn>>) {
    for batch in batches {
        let mut of_batch = Vec::new();
        target.apply(batch, &mut |lsn| of_batch.push(lsn));
        // The receiver is gone if the log could not be read to its end.
        let _ = (!of_batch.is_empty()).then(|| ended.send(of_batch));
    }
}

/// Decodes the records of a log and passes them on in batches.
struct Decoder<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    envelopes: Envelopes,
    batch: Vec<DecodedRecord>,
    /// Until the thread has it.
    target: Option<Target<'env>>,
    thread: Option<ApplyThread<'scope>>,
}

impl Decoder<'_, '_> {
    fn pass_on(&mut self, references: &mut References<'_>) {
        let target = &mut self.target;
        let scope = self.scope;
        let thread = self.thread.get_or_insert_with(|| {
            let target = target.take().expect("the thread gets the replay once");
            let (batches, todo) = sync_channel(RESTORE_BATCHES_MAX);
            let (done, ended) = channel();
            let handle = scope.spawn(move || run(target, &todo, &done));
            ApplyThread { batches, ended, handle }
        });
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(RESTORE_BATCH_RECORDS));
        // A thread that has panicked is joined at the end, which passes the panic on.
        let _ = thread.batches.send(batch);
        thread.ended.try_iter().flatten().for_each(|lsn| references.release(lsn));
    }
}

impl RecordSink for Decoder<'_, '_> {
    fn record(&mut self, record: Record<'_>, references: &mut References<'_>) {
        self.batch.push(DecodedRecord::new(&record, &mut self.envelopes));
        if self.batch.len() >= RESTORE_BATCH_RECORDS {
            self.pass_on(references);
        }
    }

    fn end(&mut self, references: &mut References<'_>) {
        if let Some(target) = &mut self.target {
            let records = std::mem::take(&mut self.batch);
            target.apply(records, &mut |lsn| references.release(lsn));
            return;
        }
        self.pass_on(references);
        let ApplyThread { batches, ended, handle } =
            self.thread.take().expect("the records were passed on");
        drop(batches);
        ended.iter().flatten().for_each(|lsn| references.release(lsn));
        if let Err(panic) = handle.join() {
            std::panic::resume_unwind(panic);
        }
    }
}

/// Calls `read` with the receiver of the records of a log, which are applied to `replay`; `problem` receives the reason
/// of each record that is left out. When this returns, all records that were read are applied.
pub(crate) fn replay_log<R>(
    replay: &mut LogReplay,
    problem: &mut (dyn FnMut(Lsn, String) + Send),
    read: impl FnOnce(&mut dyn RecordSink) -> R,
) -> R {
    std::thread::scope(|scope| {
        let target = Some(Target { replay, problem });
        let (envelopes, batch) = (Envelopes::default(), Vec::new());
        read(&mut Decoder { scope, envelopes, batch, target, thread: None })
    })
}
