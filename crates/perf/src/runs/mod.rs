//! The commands: each declares queues, loads the broker, measures, and returns the results.

mod backlog;
mod churn;
mod expiry;
mod throughput;

use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::time::timeout;

use crate::broker_process::BrokerProcess;
use crate::connection::Connection;
use crate::options::{Command, General, Messages};
use crate::report::Outcome;
use crate::target::Target;
use crate::topology::{Queue, Topology};

/// Time limit for deleting the queues and exchanges of a run.
const CLEAN_UP_MAX: Duration = Duration::from_mins(1);

/// Context of every run.
struct Run<'a> {
    target: Target,
    general: &'a General,
    product: String,
}

impl Run<'_> {
    fn process(&self) -> Option<BrokerProcess> {
        self.general.broker_pid.map(BrokerProcess)
    }

    /// Declares the topology, runs the work, and deletes the topology, also after an error.
    ///
    /// # Errors
    /// If the broker refuses a method, or the work fails.
    async fn with<T>(
        &self,
        topology: &Topology,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let worked = async {
            let mut connection = Connection::with_channel(&self.target).await?;
            topology.declare(&mut connection).await?;
            connection.close().await?;
            work.await
        };
        let worked = worked.await;
        let cleaned_up = timeout(CLEAN_UP_MAX, topology.clean_up(&self.target)).await;
        let worked = worked?;
        cleaned_up.context("the broker takes too long to delete what was declared")??;
        Ok(worked)
    }
}

/// Runs a command.
///
/// # Errors
/// If the broker cannot be reached, refuses a method, or exceeds a time limit.
pub(crate) async fn run(general: &General, command: &Command) -> Result<Vec<Outcome>> {
    let target = Target::new(&general.uri, general.cacert.as_deref())?;
    let connection = Connection::open(&target).await?;
    let product = connection.product.clone();
    connection.close().await?;
    let run = Run { target, general, product };
    match command {
        Command::Throughput(options) => throughput::run(&run, options).await.map(|one| vec![one]),
        Command::Expiry(options) => expiry::run(&run, options).await.map(|one| vec![one]),
        Command::Backlog(options) => backlog::run(&run, options).await,
        Command::Churn(options) => churn::run(&run, options).await.map(|one| vec![one]),
        Command::Man(_) => unreachable!("the manual page is printed without a broker"),
    }
}

/// A queue with the arguments of the command line.
fn queue(name: String, messages: &Messages) -> Queue {
    Queue { name, arguments: messages.queue_arguments.clone(), binding_keys: Vec::new() }
}
