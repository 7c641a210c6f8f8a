//! Redrives of the queue of dead letters: jobs that are in the log of the vhost, so that the next leader goes on. A job moves
//! no more than its limit, whoever leads: it logs what it may have moved at the most before it moves that.

use broker::redrive::{Redrive, RedriveTo, Redriven};
use broker::{BrowseCursor, Lsn, MessageState, RedriveId};

use crate::checks::message_id::id_of;
use crate::clients::handshake::everything;
use crate::clients::topology::DEAD_LETTERS;
use crate::cluster::content::serving::Serving;
use crate::cluster::process::{Context, Later, Process};
use crate::cluster::requests::redrive_job::{RedriveJob, RedriveRun};
use crate::faults::sabotage::Sabotage;

/// Most messages that are moved at once.
const SLICE_MAX: u64 = 5;

impl Process {
    /// Begins a job.
    pub(crate) fn begin_redrive(&mut self, id: u64, job: RedriveJob, ctx: &mut Context<'_>) {
        let is_frozen = self.content.vhost().is_none_or(|serving| serving.local.is_frozen());
        if self.serves().is_none() || is_frozen {
            return;
        }
        let mut run = RedriveRun { id: RedriveId(id), job, moved: 0, saved: Lsn(0) };
        self.save(&mut run, ctx);
        self.redrives.push(run);
        self.redrive_soon(ctx);
    }

    /// Goes on with the jobs in the log: the node leads the vhost now.
    pub(crate) fn take_redrives_over(&mut self, ctx: &mut Context<'_>) {
        if self.sabotage == Some(Sabotage::RedriveAbandoned) {
            return;
        }
        let restarts = self.sabotage == Some(Sabotage::RedriveRestarted);
        let Some(vhost) = self.content.vhost().and_then(Serving::leading) else { return };
        let logged = vhost.redrives().map(|(id, job)| {
            let job = RedriveJob::read(job);
            let mut run = RedriveRun { id, job, moved: 0, saved: Lsn(0) };
            if !restarts {
                run.moved = small(run.limit().moved_before());
            }
            run
        });
        self.redrives = logged.collect();
        if !self.redrives.is_empty() {
            let count = self.redrives.len();
            ctx.story.tell(
                ctx.now_us,
                format_args!("node {} goes on with {count} redrives", ctx.number),
            );
            self.redrive_soon(ctx);
        }
    }

    fn redriving(&mut self) -> &mut Serving {
        self.content.vhost().expect("a vhost has redrives")
    }

    fn redrive_soon(&mut self, ctx: &mut Context<'_>) {
        if !std::mem::replace(&mut self.is_redrive_due, true) {
            ctx.later.push((1_000 + ctx.random.below(50_000), Later::Redrive));
        }
    }

    /// Each job does a step.
    pub(crate) fn redrive(&mut self, ctx: &mut Context<'_>) {
        self.is_redrive_due = false;
        let mut runs = std::mem::take(&mut self.redrives);
        if self.serves().is_none() {
            // The next leader has them.
            return;
        }
        let is_frozen = self.content.vhost().is_none_or(|serving| serving.local.is_frozen());
        if !is_frozen && !ctx.has_alarm {
            runs.retain_mut(|run| self.step(run, ctx));
            self.touched(ctx);
        }
        self.redrives = runs;
        if !self.redrives.is_empty() {
            self.redrive_soon(ctx);
        }
    }

    /// False if the job is over.
    fn step(&mut self, run: &mut RedriveRun, ctx: &mut Context<'_>) -> bool {
        if run.saved > self.redriving().committed() {
            return true;
        }
        let slice = small(run.limit().left()).min(1 + count(ctx, SLICE_MAX));
        if let Some(least) = run.limit().reserve(u64::from(slice), 0) {
            run.job.moved_max = small(least).saturating_add(count(ctx, 20)).min(run.job.limit);
            self.save(run, ctx);
            return true;
        }
        let (moved, waits) = self.move_slice(run.job, slice, ctx);
        run.moved += moved;
        if (moved > 0 || waits) && run.limit().left() > 0 {
            return true;
        }
        let (now, id) = (self.now(ctx.reading), run.id);
        if self.sabotage != Some(Sabotage::RedriveNotCleared) {
            self.redriving().write(now, |vhost| {
                let was_there = vhost.clear_redrive(now, id);
                assert!(was_there, "a job is cleared once");
            });
        }
        ctx.story.tell(
            ctx.now_us,
            format_args!("node {} ends redrive {id} after {} messages", ctx.number, run.moved),
        );
        false
    }

    /// Logs a job as it is now.
    fn save(&mut self, run: &mut RedriveRun, ctx: &mut Context<'_>) {
        let (now, id, job) = (self.now(ctx.reading), run.id, run.job.to_octets());
        self.redriving().write(now, |vhost| vhost.set_redrive(now, id, job));
        if let Some(vhost) = self.redriving().leading() {
            run.saved = vhost.last_lsn();
        }
        self.touched(ctx);
    }

    /// Moves the first messages of the queue of dead letters. Returns the number of those that were moved, and true if others
    /// are on a page that cannot be read yet.
    fn move_slice(&mut self, job: RedriveJob, slice: u8, ctx: &mut Context<'_>) -> (u8, bool) {
        let now = self.now(ctx.reading);
        let to = if job.to_first { RedriveTo::First } else { RedriveTo::Origin };
        let (mut moved, mut waits) = (Vec::new(), false);
        let pages = self.redriving().pages.clone();
        self.redriving().write(now, |vhost| {
            let Some(queue) = vhost.queue_id(DEAD_LETTERS) else { return };
            let start = BrowseCursor::start(MessageState::Ready);
            let mut read = Vec::new();
            let browsed = loop {
                let Some(browsed) = vhost.browse(queue, start, &read, usize::from(slice)) else {
                    return;
                };
                match browsed.page.filter(|_| browsed.messages.is_empty() && read.is_empty()) {
                    // Another try comes when the page is written, or read back.
                    Some(at) => match pages.read_whole(at.page) {
                        Some(messages) => read.push((at.page, messages)),
                        None => break browsed,
                    },
                    None => break browsed,
                }
            };
            waits = browsed.messages.is_empty() && browsed.page.is_some();
            let chosen: Vec<_> = browsed.messages.into_iter().map(|it| it.entry).collect();
            let redrive = Redrive { queue, to: &to, access: &everything(), is_of_kept: false };
            let outcomes = vhost.redrive(now, redrive, &chosen).expect("the queue is there");
            let all = chosen.iter().zip(outcomes);
            let ids = all.filter(|(_, outcome)| *outcome == Redriven::Moved);
            moved.extend(ids.filter_map(|(entry, _)| id_of(&entry.message)));
        });
        let root = ctx.book.root_of(self.served);
        moved.iter().for_each(|id| ctx.book.redrives(*id, (ctx.now_us, root)));
        (small(moved.len() as u64), waits)
    }
}

fn count(ctx: &mut Context<'_>, bound: u64) -> u8 {
    small(ctx.random.below(bound))
}

fn small(count: u64) -> u8 {
    u8::try_from(count).expect("redrives of the simulation are small")
}
