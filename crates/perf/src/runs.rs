//! The commands: each declares, loads, watches, and says what came of it.

mod backlog;
mod churn;
mod expiry;
mod throughput;

use anyhow::Result;

use crate::broker_process::BrokerProcess;
use crate::connection::Connection;
use crate::options::{Command, Common, Messages};
use crate::outcome::Outcome;
use crate::target::Target;
use crate::topology::{Queue, Topology};

/// What every run works with.
struct Run<'a> {
    target: Target,
    common: &'a Common,
    product: String,
}

impl Run<'_> {
    fn process(&self) -> Option<BrokerProcess> {
        self.common.broker_pid.map(BrokerProcess)
    }

    async fn declare(&self, topology: &Topology) -> Result<()> {
        let mut connection = Connection::with_channel(&self.target).await?;
        topology.declare(&mut connection).await?;
        connection.close().await
    }
}

/// Does what the command line says.
///
/// # Errors
/// When the broker cannot be reached, refuses something, or does not do it in time.
pub(crate) async fn run(common: &Common, command: &Command) -> Result<Vec<Outcome>> {
    let target = Target::new(&common.uri, common.cacert.as_deref())?;
    let connection = Connection::open(&target).await?;
    let product = connection.product.clone();
    connection.close().await?;
    let run = Run { target, common, product };
    match command {
        Command::Throughput(options) => throughput::run(&run, options).await.map(|one| vec![one]),
        Command::Expiry(options) => expiry::run(&run, options).await.map(|one| vec![one]),
        Command::Backlog(options) => backlog::run(&run, options).await,
        Command::Churn(options) => churn::run(&run, options).await.map(|one| vec![one]),
    }
}

/// A queue with the arguments that the command line gives.
fn queue(name: String, messages: &Messages) -> Queue {
    Queue { name, arguments: messages.queue_arguments.clone(), binding_keys: Vec::new() }
}
