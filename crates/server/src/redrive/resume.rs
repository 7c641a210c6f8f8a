//! Jobs of an earlier process go on.

use std::sync::Arc;

use management::{RedriveError, RedriveState};

use super::job::{Job, Source};
use super::record::Unfinished;
use super::run::Run;
use crate::auth::ctl_token::full_access;
use crate::node::Node;
use crate::vhost::internal_channel::InternalChannel;

/// Lets the jobs that ran when the last process ended go on. Call it in a runtime, before the first client is
/// served: messages that arrive later are none of the jobs' business.
pub(crate) fn resume(node: &Node) {
    let jobs: Vec<Arc<Job>> = node.redrives.known.lock().jobs.iter().cloned().collect();
    for job in jobs {
        let Some(rest) = job.unfinished.lock().clone() else { continue };
        resume_one(node, job, rest);
    }
}

fn resume_one(node: &Node, job: Arc<Job>, rest: Unfinished) {
    let (clock, is_stopping) = (node.clock, Arc::clone(&node.redrives.is_stopping));
    let found = find(node, &job, &rest);
    tokio::spawn(async move {
        let opened = match found {
            Ok((source, channel)) => channel.await.map(|channel| (source, channel)),
            Err(reason) => Err(reason),
        };
        let id = job.status.lock().id;
        match opened {
            Ok((source, channel)) => {
                tracing::info!(id, "a redrive goes on");
                let options = (clock, is_stopping);
                Run::new(Arc::clone(&job), channel, source, rest.request, options).run().await;
            }
            Err(reason) => {
                tracing::warn!(id, reason, "a redrive does not go on");
                job.end(RedriveState::Failed(reason), clock.now().wall_ms, None).await;
            }
        }
        job.is_over.send_replace(true);
    });
}

/// The queue as it is now, and the channel of the job once it is open.
///
/// # Errors
/// The reason why the job cannot go on.
fn find(
    node: &Node,
    job: &Job,
    rest: &Unfinished,
) -> Result<(Source, impl Future<Output = Result<InternalChannel, String>> + use<>), String> {
    let (vhost, queue, user) = {
        let status = job.status.lock();
        (status.vhost.clone(), status.queue.clone(), status.user.clone())
    };
    let handle = node
        .vhosts
        .get(&vhost)
        .ok_or_else(|| format!("vhost '{vhost}' does not exist any more"))?;
    if handle.id() != rest.vhost_id {
        return Err(format!("vhost '{vhost}' was deleted and made again"));
    }
    let access = if rest.is_local {
        full_access()?
    } else {
        let known = node
            .auth
            .user(&user)
            .ok_or_else(|| format!("user '{user}' does not exist any more"))?;
        let access = known.access(&vhost);
        access.ok_or_else(|| {
            format!("user '{user}' has no permissions in vhost '{vhost}' any more")
        })?
    };
    let source = Source::find(&handle, &queue, &rest.request, &access);
    let mut source = source.map_err(|error| {
        let refusal = if let RedriveError::Refused(refusal) = error { Some(refusal) } else { None };
        refusal.map_or_else(|| "the queue is gone".to_owned(), |refusal| refusal.explanation)
    })?;
    if source.number != rest.queue {
        return Err("the queue is gone".to_owned());
    }
    // Sequence numbers may be given again if the log has lost the last messages.
    source.last_seq = source.last_seq.min(rest.last_seq);
    let channel = async move {
        InternalChannel::open(handle, access).await.map_err(|refusal| refusal.explanation)
    };
    Ok((source, channel))
}
