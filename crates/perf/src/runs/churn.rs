//! `churn`: connections, channels or queues that come and go.

use std::sync::Arc;
use std::time::Duration;

use amqp::method::{ChannelClose, ChannelOpen, QueueDeclare, QueueDelete};
use anyhow::Result;
use tokio::task::JoinSet;

use super::Run;
use crate::connection::{CHANNEL, Connection};
use crate::measurement::{Measured, Until, watch};
use crate::metrics::{Metrics, count, record};
use crate::options::{Churn, Churned};
use crate::report::Outcome;
use crate::target::Target;
use crate::topology::{Queue, Topology};

/// Opens and closes resources for the time in the options.
///
/// # Errors
/// If the broker refuses a method.
pub(super) async fn run(run: &Run<'_>, options: &Churn) -> Result<Outcome> {
    // The end may come between a declaration and its deletion: a queue of each worker is there from the
    // beginning, and deleted in the end like those of other runs.
    let is_queues = matches!(options.what, Churned::Queues);
    let workers = if is_queues { options.workers } else { 0 };
    let name = |number| format!("{}-churn-{number}", run.general.name);
    let queue =
        |number| Queue { name: name(number), arguments: Vec::new(), binding_keys: Vec::new() };
    let queues = (0..workers).map(queue).collect();
    let topology = Topology { is_durable: true, exchange: None, queues };
    let measured = run.with(&topology, load(run, options, name)).await?;
    Ok(Outcome::new("churn", &run.product, measured))
}

async fn load(run: &Run<'_>, options: &Churn, name: impl Fn(usize) -> String) -> Result<Measured> {
    let (metrics, mut tasks) = (Arc::new(Metrics::new()), JoinSet::new());
    for number in 0..options.workers {
        let (target, metrics) = (run.target.clone(), Arc::clone(&metrics));
        let queue = name(number);
        match options.what {
            Churned::Connections => tasks.spawn(connections(target, metrics)),
            Churned::Channels => tasks.spawn(channels(target, metrics)),
            Churned::Queues => tasks.spawn(queues(target, metrics, queue)),
        };
    }
    let measured = Duration::from_secs_f64(options.time);
    let until = Until::Time { warm_up: Duration::ZERO, measured };
    watch(&metrics, tasks, until, run.process(), run.general.quiet).await
}

async fn connections(target: Target, metrics: Arc<Metrics>) -> Result<()> {
    let recorder = metrics.latency.recorder();
    loop {
        let began_ns = metrics.now_ns();
        Connection::with_channel(&target).await?.close().await?;
        record(&mut recorder.lock(), metrics.now_ns() - began_ns);
        count(&metrics.counters.churned, 1);
    }
}

async fn channels(target: Target, metrics: Arc<Metrics>) -> Result<()> {
    let recorder = metrics.latency.recorder();
    let mut connection = Connection::open(&target).await?;
    let close = ChannelClose { reply_code: 200, reply_text: "done", class_id: 0, method_id: 0 };
    loop {
        let began_ns = metrics.now_ns();
        connection.call(CHANNEL, ChannelOpen).await?;
        connection.call(CHANNEL, close).await?;
        record(&mut recorder.lock(), metrics.now_ns() - began_ns);
        count(&metrics.counters.churned, 1);
    }
}

async fn queues(target: Target, metrics: Arc<Metrics>, queue: String) -> Result<()> {
    let recorder = metrics.latency.recorder();
    let mut connection = Connection::with_channel(&target).await?;
    loop {
        let began_ns = metrics.now_ns();
        let declare = QueueDeclare { queue: &queue, durable: true, ..QueueDeclare::default() };
        connection.call(CHANNEL, declare).await?;
        let delete = QueueDelete { queue: &queue, ..QueueDelete::default() };
        connection.call(CHANNEL, delete).await?;
        record(&mut recorder.lock(), metrics.now_ns() - began_ns);
        count(&metrics.counters.churned, 1);
    }
}
