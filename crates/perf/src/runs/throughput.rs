//! `throughput`: producers and consumers over queues, with or without an exchange between.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::task::JoinSet;

use super::{Run, queue};
use crate::consumer::{self, AckMode, ConsumerOptions, DeliveryKind};
use crate::measurement::{Measured, Until, watch};
use crate::message_template::MessageTemplate;
use crate::metrics::Metrics;
use crate::options::Throughput;
use crate::producer::{self, InFlight, Limits};
use crate::rate::SendRate;
use crate::report::Outcome;
use crate::topology::{Argument, Exchange, Queue, Topology};

/// Loads the broker for the time in the options.
///
/// # Errors
/// If the broker refuses a method.
pub(super) async fn run(run: &Run<'_>, options: &Throughput) -> Result<Outcome> {
    let plan = Plan::new(&run.general.name, options);
    let measured = run.with(&plan.topology, load(run, &plan, options)).await?;
    Ok(Outcome::new("throughput", &run.product, measured))
}

/// Connects all producers and consumers, starts them together, and measures.
async fn load(run: &Run<'_>, plan: &Plan, options: &Throughput) -> Result<Measured> {
    let (metrics, mut tasks) = (Arc::new(Metrics::new()), JoinSet::new());
    for number in 0..options.consumers() {
        let queues: Vec<&str> = plan.shared_out(number, options.consumers(), options).collect();
        let consume =
            consumer::start(&run.target, &queues, consumer_options(options), Arc::clone(&metrics))
                .await?;
        tasks.spawn(consume);
    }
    if let Some(letters) = &plan.dead_letters {
        let rejected = ConsumerOptions {
            ack_mode: AckMode::NoAck,
            prefetch: 0,
            rate: None,
            what: DeliveryKind::Rejected,
        };
        tasks
            .spawn(consumer::start(&run.target, &[letters], rejected, Arc::clone(&metrics)).await?);
    }
    let mut producers = Vec::with_capacity(options.producers);
    let limits = plan.limits(options)?;
    for number in 0..options.producers {
        let template = plan.template(number, options);
        let seed = run.general.seed.wrapping_add(number as u64);
        let (limits, metrics) = (limits.clone(), Arc::clone(&metrics));
        producers.push(producer::start(&run.target, &template, limits, seed, metrics).await?);
    }
    for produce in producers {
        tasks.spawn(produce);
    }
    let until = Until::Time {
        warm_up: Duration::from_secs_f64(options.warm_up),
        measured: Duration::from_secs_f64(options.time),
    };
    watch(&metrics, tasks, until, run.process(), run.general.quiet).await
}

fn consumer_options(options: &Throughput) -> ConsumerOptions {
    let every = options.ack_every;
    let ack_mode = match (options.auto_ack, options.reject) {
        (true, _) => AckMode::NoAck,
        (_, true) => AckMode::Reject { every },
        _ => AckMode::Ack { every },
    };
    ConsumerOptions {
        ack_mode,
        prefetch: options.prefetch,
        rate: options.consumer_rate,
        what: DeliveryKind::Messages,
    }
}

/// Queues and exchanges to declare, and how producers reach them.
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

    /// Queues of one of `workers`; with fewer workers than queues each has several.
    fn shared_out<'a>(
        &'a self,
        number: usize,
        workers: usize,
        options: &Throughput,
    ) -> impl Iterator<Item = &'a str> {
        let queues = self.topology.queues.iter().take(options.queues);
        queues.skip(number % options.queues).step_by(workers).map(|queue| queue.name.as_str())
    }

    fn template(&self, number: usize, options: &Throughput) -> MessageTemplate {
        let (exchange, routing_keys) = match &self.topology.exchange {
            Some(exchange) => {
                (exchange.name.clone(), (0..options.bindings).map(routing_key).collect())
            }
            None => {
                let queues = self.shared_out(number, options.producers, options);
                (String::new(), queues.map(str::to_owned).collect())
            }
        };
        MessageTemplate {
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
        // Without consumers, producers cannot be ahead of them.
        let in_flight_max = (options.in_flight > 0 && options.consumers() > 0)
            .then_some(InFlight { messages: options.in_flight, copies });
        Ok(Limits {
            pace: options.rate.map(SendRate::start).transpose()?,
            window: options.messages.confirm,
            in_flight_max,
            messages: None,
        })
    }
}

/// Routing key of messages for a binding.
fn routing_key(number: usize) -> String {
    format!("perf.{number:06}.message")
}

/// Key of a binding; for a topic exchange it has a wildcard.
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
    fn queues_are_divided_among_workers() {
        assert_eq!(shares("--queues 3 --reject", 2), [vec!["q-0", "q-2"], vec!["q-1"]]);
        assert_eq!(shares("--queues 2", 3), [["q-0"], ["q-1"], ["q-0"]]);
    }
}
