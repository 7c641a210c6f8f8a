//! `throughput`: producers and consumers over queues, with or without an exchange between.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::task::JoinSet;

use super::{Run, queue};
use crate::consumer::{self, Manner, Settling, What};
use crate::measure::{Measured, Until, watch};
use crate::meters::Meters;
use crate::options::Throughput;
use crate::outcome::Outcome;
use crate::pace::Pace;
use crate::producer::{self, InFlight, Limits};
use crate::tape::Recipe;
use crate::topology::{Argument, Exchange, Queue, Topology};

/// Loads for the time that the options say.
///
/// # Errors
/// When the broker refuses something.
pub(super) async fn run(run: &Run<'_>, options: &Throughput) -> Result<Outcome> {
    let plan = Plan::new(&run.general.name, options);
    let measured = run.with(&plan.topology, load(run, &plan, options)).await?;
    Ok(Outcome::new("throughput", &run.product, measured))
}

/// Connects everybody, lets them begin together, and watches.
async fn load(run: &Run<'_>, plan: &Plan, options: &Throughput) -> Result<Measured> {
    let (meters, mut tasks) = (Arc::new(Meters::new()), JoinSet::new());
    for number in 0..options.consumers() {
        let queues: Vec<&str> = plan.shared_out(number, options.consumers(), options).collect();
        let consume =
            consumer::start(&run.target, &queues, manner(options), Arc::clone(&meters)).await?;
        tasks.spawn(consume);
    }
    if let Some(letters) = &plan.dead_letters {
        let manner =
            Manner { settling: Settling::NoAck, prefetch: 0, rate: None, what: What::Rejected };
        tasks.spawn(consumer::start(&run.target, &[letters], manner, Arc::clone(&meters)).await?);
    }
    let mut producers = Vec::with_capacity(options.producers);
    let limits = plan.limits(options)?;
    for number in 0..options.producers {
        let recipe = plan.recipe(number, options);
        let seed = run.general.seed.wrapping_add(number as u64);
        let (limits, meters) = (limits.clone(), Arc::clone(&meters));
        producers.push(producer::start(&run.target, &recipe, limits, seed, meters).await?);
    }
    for produce in producers {
        tasks.spawn(produce);
    }
    let until = Until::Time {
        warm_up: Duration::from_secs_f64(options.warm_up),
        measured: Duration::from_secs_f64(options.time),
    };
    watch(&meters, tasks, until, run.process(), run.general.quiet).await
}

fn manner(options: &Throughput) -> Manner {
    let every = options.ack_every;
    let settling = match (options.auto_ack, options.reject) {
        (true, _) => Settling::NoAck,
        (_, true) => Settling::Reject { every },
        _ => Settling::Ack { every },
    };
    Manner {
        settling,
        prefetch: options.prefetch,
        rate: options.consumer_rate,
        what: What::Messages,
    }
}

/// What is declared, and how producers reach it.
struct Plan {
    topology: Topology,
    dead_letters: Option<String>,
}

impl Plan {
    fn new(name: &str, options: &Throughput) -> Self {
        let mut queues: Vec<Queue> = (0..options.queues)
            .map(|number| queue(format!("{name}-{number}"), &options.messages))
            .collect();
        let is_topic = options.exchange_type.as_deref() == Some("topic");
        for number in 0..options.bindings.max(options.queues) {
            let key = binding_key(number % options.bindings, is_topic);
            queues[number % options.queues].binding_keys.push(key);
        }
        let exchange =
            options.exchange_type.clone().map(|kind| Exchange { name: name.to_owned(), kind });
        let dead_letters = options.reject.then(|| format!("{name}-dead-letters"));
        if let Some(letters) = &dead_letters {
            for queue in &mut queues {
                queue.arguments.push(Argument::text("x-dead-letter-exchange", ""));
                queue.arguments.push(Argument::text("x-dead-letter-routing-key", letters));
            }
            queues.push(queue(letters.clone(), &options.messages));
        }
        let is_durable = options.messages.persistent;
        Self { topology: Topology { is_durable, exchange, queues }, dead_letters }
    }

    /// The queues of one of `workers`: where there are fewer workers than queues, each has several.
    fn shared_out<'a>(
        &'a self,
        number: usize,
        workers: usize,
        options: &Throughput,
    ) -> impl Iterator<Item = &'a str> {
        let queues = self.topology.queues.iter().take(options.queues);
        queues.skip(number % options.queues).step_by(workers).map(|queue| queue.name.as_str())
    }

    fn recipe(&self, number: usize, options: &Throughput) -> Recipe {
        let (exchange, routing_keys) = match &self.topology.exchange {
            Some(exchange) => {
                (exchange.name.clone(), (0..options.bindings).map(routing_key).collect())
            }
            None => {
                let queues = self.shared_out(number, options.producers, options);
                (String::new(), queues.map(str::to_owned).collect())
            }
        };
        Recipe {
            exchange,
            routing_keys,
            size: options.messages.size,
            is_persistent: options.messages.persistent,
            is_mandatory: options.mandatory,
            priority_max: options.priority_max,
            ttl_ms: None,
        }
    }

    fn limits(&self, options: &Throughput) -> io::Result<Limits> {
        let is_fanout = self.topology.exchange.as_ref().is_some_and(|it| it.kind == "fanout");
        let copies = if is_fanout { options.queues as u64 } else { 1 };
        // Without consumers nobody can be ahead of them.
        let in_flight_max = (options.in_flight > 0 && options.consumers() > 0)
            .then_some(InFlight { messages: options.in_flight, copies });
        Ok(Limits {
            pace: options.rate.map(Pace::start).transpose()?,
            window: options.messages.confirm,
            in_flight_max,
            messages: None,
        })
    }
}

/// The key that messages for a binding have.
fn routing_key(number: usize) -> String {
    format!("perf.{number:06}.message")
}

/// The key of the binding, for a topic exchange with a wildcard.
fn binding_key(number: usize, is_topic: bool) -> String {
    if is_topic { format!("perf.{number:06}.*") } else { routing_key(number) }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::options::{Command, CommandLine};

    fn shares(line: &str, workers: usize) -> Vec<Vec<String>> {
        let line = CommandLine::parse_from(format!("leveret-perf throughput {line}").split(' '));
        let Command::Throughput(options) = line.command else { panic!("another command") };
        let plan = Plan::new("q", &options);
        let share =
            |number| plan.shared_out(number, workers, &options).map(str::to_owned).collect();
        (0..workers).map(share).collect()
    }

    #[test]
    fn queues_are_shared_out_and_dead_letters_are_nobodys() {
        assert_eq!(shares("--queues 3 --reject", 2), [vec!["q-0", "q-2"], vec!["q-1"]]);
        assert_eq!(shares("--queues 2", 3), [["q-0"], ["q-1"], ["q-0"]]);
    }
}
