//! Jobs of an earlier process, or of the node that led their vhost before, go on.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use super::Redrives;
use super::fate::{Circumstances, Fate, Stop, Tries, fate, pause};
use super::forget;
use super::job::{Job, Source};
use super::keeper::{Keeper, logged};
use super::record::Unfinished;
use super::run::Run;
use crate::auth::Auth;
use crate::auth::ctl_token::full_access;
use crate::clock::Clock;
use crate::limits::REDRIVE_LEADS_INTERVAL;
use crate::replicas::Replicator;
use crate::requests::{RedriveError, RedriveState};
use crate::vhost::internal_channel::InternalChannel;
use crate::vhost::{VhostHandle, Vhosts};

/// The parts of a node that jobs begun elsewhere need to go on.
#[derive(Debug)]
pub(crate) struct ResumeContext {
    pub(crate) redrives: Arc<Redrives>,
    pub(crate) vhosts: Arc<Vhosts>,
    pub(crate) auth: Arc<Auth>,
    pub(crate) clock: Clock,
    /// None without a cluster.
    pub(crate) replicator: Option<Arc<Replicator>>,
}

/// Lets the jobs that ran when the last process ended go on. Call it in a runtime, before the first client is
/// served: messages that arrive later are none of the jobs' business.
pub(crate) fn resume(context: &Arc<ResumeContext>) {
    let jobs: Vec<Arc<Job>> = context.redrives.known.lock().jobs.iter().cloned().collect();
    for job in jobs {
        let Some(rest) = job.unfinished.lock().clone() else { continue };
        let vhost = job.status.lock().vhost.clone();
        if context.vhosts.get(&vhost).is_some_and(|handle| handle.down().is_some()) {
            tracing::warn!(vhost, "a redrive waits for the next start, because its vhost is down");
            continue;
        }
        resume_one(context, job, rest);
    }
}

/// Takes over the jobs in the logs of vhosts that this node begins to lead, as long as the node runs.
pub(crate) async fn follow_leads(context: Arc<ResumeContext>) {
    let Some(replicator) = &context.replicator else { return };
    loop {
        replicator.lead_changed().await;
        // Leads of many vhosts change together.
        tokio::time::sleep(REDRIVE_LEADS_INTERVAL).await;
        // Jobs of vhosts that this node has led; the next leaders have them.
        context.redrives.known.lock().jobs.retain(|job| job.keeper.is_here());
        for handle in context.vhosts.all() {
            let is_new = handle.is_replicated() && handle.is_led_here() && {
                let known = context.redrives.known.lock();
                known.led.get(&handle.id()).is_none_or(|led| !is_same(led, &handle))
            };
            // A node that was elected serves a moment later.
            if is_new && handle.is_served_here() {
                take_over(&context, &handle);
            }
        }
    }
}

impl Redrives {
    /// True if the jobs in the log of a vhost that this node leads are known.
    pub(crate) fn has_taken_over(&self, handle: &Arc<VhostHandle>) -> bool {
        self.known.lock().led.get(&handle.id()).is_some_and(|led| is_same(led, handle))
    }
}

fn is_same(led: &Weak<VhostHandle>, handle: &Arc<VhostHandle>) -> bool {
    std::ptr::eq(led.as_ptr(), Arc::as_ptr(handle))
}

/// Takes over the jobs in the log of a vhost.
fn take_over(context: &Arc<ResumeContext>, handle: &Arc<VhostHandle>) {
    let records = logged(handle);
    let mut resumed = Vec::new();
    let forgotten = {
        let mut known = context.redrives.known.lock();
        known.led.retain(|_, led| led.strong_count() > 0);
        known.led.insert(handle.id(), Arc::downgrade(handle));
        for record in records {
            let id = record.job.id;
            let is_known = known
                .jobs
                .iter()
                .any(|job| job.keeper.is_log_of(handle) && job.status.lock().id == id);
            if is_known {
                // Begun since this node leads.
                continue;
            }
            known.last_id = known.last_id.max(id);
            let rest = record.unfinished.clone();
            let job = Arc::new(Job::new(record.resumed(), Keeper::Log(Arc::clone(handle))));
            known.jobs.push_back(Arc::clone(&job));
            resumed.extend(rest.map(|rest| (job, rest)));
        }
        known.jobs.make_contiguous().sort_by_key(|job| job.status.lock().id);
        known.forget_some()
    };
    forget(forgotten);
    resumed.into_iter().for_each(|(job, rest)| resume_one(context, job, rest));
}

fn resume_one(context: &Arc<ResumeContext>, job: Arc<Job>, rest: Unfinished) {
    let (clock, is_stopping) = (context.clock, Arc::clone(&context.redrives.is_stopping));
    let found = find(context, &job, &rest);
    let context = Arc::downgrade(context);
    tokio::spawn(async move {
        let (mut found, mut tries) = (found, Tries::default());
        loop {
            let opened = match found {
                Ok((source, channel)) => channel.await.map(|channel| (source, channel)),
                Err(stop) => Err(stop),
            };
            let id = job.status.lock().id;
            let stop = match opened {
                Ok((source, channel)) => {
                    tracing::info!(id, "a redrive goes on");
                    let options = (clock, is_stopping);
                    Run::new(Arc::clone(&job), channel, source, rest.request, options).run().await;
                    break;
                }
                Err(stop) => stop,
            };
            let is_stopping = is_stopping.load(Ordering::Acquire);
            let circumstances = Circumstances::of(&job, is_stopping, true);
            let may_retry = job.keeper.is_shared() && tries.may_retry(0);
            match fate(Err(stop), circumstances, may_retry) {
                // What is written stays as it is.
                Fate::GoesOnElsewhere | Fate::GoesOnLater => break,
                Fate::Ends(state) => {
                    let reason =
                        if let RedriveState::Failed(reason) = &state { reason } else { "" };
                    tracing::warn!(id, reason, "a redrive does not go on");
                    job.end(state, clock.now().wall_ms(), None).await;
                    break;
                }
                Fate::Retries(reason) => {
                    tracing::debug!(id, reason, "a redrive does not go on yet");
                    pause(&job).await;
                    let Some(context) = context.upgrade() else { break };
                    found = find(&context, &job, &rest);
                }
            }
        }
        job.is_over.send_replace(true);
    });
}

/// The queue as it is now, and the channel of the job once it is open.
///
/// # Errors
/// The reason why the job cannot go on, or not yet: a node that has just begun to lead may know less of the users than the
/// one before.
fn find(
    context: &ResumeContext,
    job: &Job,
    rest: &Unfinished,
) -> Result<(Source, impl Future<Output = Result<InternalChannel, Stop>> + use<>), Stop> {
    let (vhost, queue, user) = {
        let status = job.status.lock();
        (status.vhost.clone(), status.queue.clone(), status.user.clone())
    };
    let known = match &job.keeper {
        Keeper::Log(handle) => Some(Arc::clone(handle)),
        Keeper::File(_) => context.vhosts.get(&vhost),
    };
    let handle =
        known.ok_or_else(|| Stop::Failed(format!("vhost '{vhost}' does not exist any more")))?;
    if handle.id() != rest.vhost_id {
        return Err(Stop::Failed(format!("vhost '{vhost}' was deleted and made again")));
    }
    let access = if rest.is_local {
        full_access().map_err(Stop::Hindered)?
    } else {
        let known = context
            .auth
            .user(&user)
            .ok_or_else(|| Stop::Hindered(format!("user '{user}' does not exist any more")))?;
        let access = known.access(&vhost);
        access.ok_or_else(|| {
            let text = format!("user '{user}' has no permissions in vhost '{vhost}' any more");
            Stop::Hindered(text)
        })?
    };
    let source = Source::find(&handle, &queue, &rest.request, &access);
    let mut source = source.map_err(|error| {
        let refusal = if let RedriveError::Refused(refusal) = error { Some(refusal) } else { None };
        Stop::Failed(
            refusal.map_or_else(|| "the queue is gone".to_owned(), |refusal| refusal.explanation),
        )
    })?;
    if source.number != rest.queue {
        return Err(Stop::Failed("the queue is gone".to_owned()));
    }
    // Sequence numbers may be given again if the log has lost the last messages.
    source.last_seq = source.last_seq.min(rest.last_seq);
    let channel = async move {
        let opened = InternalChannel::open(handle, access).await;
        opened.map_err(|refusal| Stop::Hindered(refusal.explanation))
    };
    Ok((source, channel))
}
