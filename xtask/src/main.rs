//! `cargo xtask`: the one place for the commands people type on this repository.
//!
//! Decides which command runs and with what exit code; every command has its own module. Nothing
//! here is part of the broker, and the broker knows nothing of it. A command prints its result on
//! stdout, what went wrong on stderr, and exits with 0 only when everything it was asked for held.
#![allow(clippy::print_stdout, reason = "a program for people: printing is its purpose")]
#![allow(clippy::print_stderr, reason = "a program for people: printing is its purpose")]

mod activity;
mod bench;
mod broker_process;
mod compare;
mod dist;
mod explore;
mod flood;
mod fuzz;
mod hostile;
mod instructions;
mod interop;
mod netsplit;
mod place;
mod powercut;
mod process;
mod repository;
mod sim;
mod test;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The commands of this repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
struct CommandLine {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Check everything: formatting, taste, lints, and every test suite
    ///
    /// Installs its tools by itself: a Python environment and clients of other languages below the target folder,
    /// Debian packages through apt-get. Runs steps beside each other, shows the output of those that fail, and goes on
    /// without what needs them. The end has the time of every step, the slowest tests, the tests that did not run with
    /// the reasons, and the failures, each with the command that repeats it; the last line has the numbers of passed,
    /// failed and skipped tests.
    Test(test::Options),
    /// Check the rules of taste that a machine can check
    ///
    /// Looks at every file that git tracks or would track. Notes are for reading; findings make
    /// the command fail.
    Tidy,
    /// Load Leveret, a running RabbitMQ and other programs in turn, and compare
    ///
    /// Builds the broker and leveret-perf and runs every load several times; medians count. Prints the figures
    /// as they come and, with --report, writes docs/internals/benchmarks.md. A RabbitMQ needs the user guest, and nothing
    /// of value in it.
    Bench(bench::Options),
    /// Count instructions and allocations per message, and compare them with the recorded ones
    ///
    /// Fails when a count is above that of docs/internals/instructions.md. Installs valgrind by itself.
    Instructions(instructions::Options),
    /// Build packages: a Debian package, an archive of static programs, a container image, the list of what is inside,
    /// checksums
    ///
    /// The same commit gives the same bytes: no file has a time, a path or a user of this machine.
    Dist(dist::Options),
    /// Fuzz: try generated input, for seconds or for hours
    ///
    /// Builds the targets of the folder fuzz with coverage, plays their seeds and goes on from there.
    /// Prints the coverage of each; ends with a code other than 0 when one has failed.
    Fuzz(fuzz::Options),
    /// Explore with input that no test run had: for an hour, for a night, before a release
    ///
    /// Fuzz targets, property tests, simulations, loops of kills and partitions, and suites that draw, with fresh numbers, in
    /// turns. Goes on after a finding, prints the command that repeats it, and keeps it where the test command plays it:
    /// an input in fuzz/corpus, a seed in tests/seeds.txt. Ends with a code other than 0 when something was found.
    Explore(explore::Options),
    /// Compare Leveret with `RabbitMQ`: every endpoint, odd values, every command
    ///
    /// Writes docs/reference/compared-with-rabbitmq.md. `RabbitMQ`'s answers are
    /// kept; with its addresses it is asked anew. It needs the user guest and nothing of value in it; its application is
    /// stopped and started.
    Compare(compare::Options),
    /// Test clients of many languages against Leveret
    ///
    /// Installs them from their registries and from Debian, takes each through the scenarios of
    /// tests/interop, and writes docs/internals/clients.md when all of them ran.
    Interop(interop::Options),
    /// Run the hostile battery against a broker and measure its effects on other clients
    ///
    /// Writes docs/internals/hostile-peers.md. With one worker, so that it takes some minutes.
    Hostile,
    /// Flood Leveret, and a running RabbitMQ, with clients, and measure the costs
    ///
    /// Fails when Leveret exceeds a bound. Writes docs/internals/floods.md with
    /// --report. A RabbitMQ needs the user guest, and nothing of value in it.
    Flood(flood::Options),
    /// Part the nodes of a cluster from each other, and check every message that was confirmed
    ///
    /// Three or five brokers with proxies between them, which hold, delay, throttle or cut either direction of each link;
    /// nodes are killed and suspended besides. Stops at the first run in which a check fails, prints its seed, and ends
    /// with a code other than 0. tests/netsplit/README.md lists the harms and the checks.
    Netsplit(netsplit::Options),
    /// Cut the power of a broker's disk repeatedly and check its content
    ///
    /// Needs root and loop devices; ends with code 3 where that is impossible. Installs what it needs
    /// by itself.
    Powercut(powercut::Options),
    /// Simulate a cluster: several nodes, their disks, links and clocks, clients, and faults, from seeds
    ///
    /// Stops at the first seed in which a check fails, and ends with a code other than 0. docs/internals/simulator.md
    /// lists the checks.
    Sim(sim::Options),
}

fn main() -> ExitCode {
    let result = match CommandLine::parse().task {
        Task::Test(options) => test::run(&options),
        Task::Tidy => tidy::run().map(|()| ExitCode::SUCCESS),
        Task::Bench(options) => bench::run(&options).map(|()| ExitCode::SUCCESS),
        Task::Instructions(options) => instructions::run(&options).map(|()| ExitCode::SUCCESS),
        Task::Dist(options) => dist::run(&options).map(|()| ExitCode::SUCCESS),
        Task::Fuzz(options) => fuzz::run(&options).map(|()| ExitCode::SUCCESS),
        Task::Explore(options) => explore::run(&options),
        Task::Compare(options) => compare::run(&options),
        Task::Interop(options) => interop::run(&options),
        Task::Hostile => hostile::run(),
        Task::Flood(options) => flood::run(&options),
        Task::Netsplit(options) => netsplit::run(&options),
        Task::Powercut(options) => powercut::run(&options),
        Task::Sim(options) => sim::run(&options),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
