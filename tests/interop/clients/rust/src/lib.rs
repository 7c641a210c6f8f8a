//! Frame of every program of this folder around its scenarios.

pub mod deaths;
pub mod refusal;

use std::any::Any;
use std::error::Error;
use std::fmt::Display;
use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use std::{env, io};

use tokio::task::{self, LocalSet};
use tokio::time::{Instant, sleep, timeout};

/// End of a scenario: it asserts its expectations; an error of the client is an error.
pub type Outcome = Result<(), Box<dyn Error>>;

/// Longest wait of a scenario for an event that should come soon.
pub const WITHIN: Duration = Duration::from_secs(60);

/// The time after which an unused queue expires.
pub const EXPIRES_MS: i32 = 300;

/// The host of the broker.
pub fn host() -> String {
    variable("AMQP_HOST")
}

/// The port for AMQP.
pub fn port() -> u16 {
    variable("AMQP_PORT").parse().expect("AMQP_PORT is a port")
}

/// The port for AMQPS.
pub fn tls_port() -> u16 {
    variable("AMQPS_PORT").parse().expect("AMQPS_PORT is a port")
}

/// The file with the certificate that the broker's is signed with.
pub fn ca_file() -> PathBuf {
    variable("CA_FILE").into()
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

/// 20,000,000 bytes that are not all equal.
pub fn large() -> Vec<u8> {
    (0..250).cycle().take(20_000_000).collect()
}

/// A unique name.
pub fn unique() -> String {
    format!("interop-{:016x}", RandomState::new().hash_one(()))
}

/// Result of the future, soon.
pub async fn within<T>(what: &str, happens: impl Future<Output = T>) -> T {
    let late = |_| panic!("not within {} s: {what}", WITHIN.as_secs());
    timeout(WITHIN, happens).await.unwrap_or_else(late)
}

/// Waits until it holds.
pub async fn eventually<E>(
    what: &str,
    holds: impl AsyncFnMut() -> Result<bool, E>,
) -> Result<(), E> {
    ask(what, Duration::from_millis(10), holds).await
}

/// Waits until a queue that expires is gone. Asking for it counts as a use, so that it is asked for rarely.
pub async fn expires<E>(gone: impl AsyncFnMut() -> Result<bool, E>) -> Result<(), E> {
    let expires = Duration::from_millis(EXPIRES_MS.unsigned_abs().into());
    sleep(expires).await;
    ask("the queue is gone", 2 * expires, gone).await
}

async fn ask<E>(
    what: &str,
    every: Duration,
    mut holds: impl AsyncFnMut() -> Result<bool, E>,
) -> Result<(), E> {
    let deadline = Instant::now() + WITHIN;
    while !holds().await? {
        assert!(Instant::now() < deadline, "not within {} s: {what}", WITHIN.as_secs());
        sleep(every).await;
    }
    Ok(())
}

/// Has the broker killed and started again.
pub async fn restart_broker() {
    println!("restart");
    let answer = task::spawn_blocking(|| io::stdin().lines().next());
    let answer = answer.await.expect("the line is read");
    assert_eq!(answer.expect("there is a line").expect("it is text"), "restarted");
}

/// Runs the scenarios that the command line names; `scenario` makes a future of a name.
pub async fn run<S>(package: &str, scenario: impl Fn(String) -> S) -> ExitCode
where
    S: Future<Output = Outcome> + 'static,
{
    // Two are compiled in, one of them for rabbitmqadmin only.
    let chosen = rustls::crypto::ring::default_provider().install_default();
    assert!(chosen.is_ok(), "nothing has chosen a cryptography before");
    println!("version {}", version(package));
    let mut code = ExitCode::SUCCESS;
    let mut failed = |name: &str, why: &dyn Display| {
        code = ExitCode::FAILURE;
        println!("failed {name}: {}", why.to_string().replace('\n', " "));
    };
    for name in env::args().skip(1) {
        let steps = scenario(name.clone());
        match LocalSet::new().run_until(async { task::spawn_local(steps).await }).await {
            Ok(Ok(())) => println!("ok {name}"),
            Ok(Err(error)) => failed(&name, &error),
            Err(panicked) => failed(&name, &said(&*panicked.into_panic())),
        }
    }
    code
}

fn said(panic: &(dyn Any + Send)) -> String {
    let literal = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    literal.or_else(|| panic.downcast_ref().cloned()).unwrap_or_default()
}

/// The version of a client as the lock file pins it.
fn version(package: &str) -> &str {
    let lock = include_str!("../Cargo.lock");
    let (_, entry) =
        lock.split_once(&format!("name = \"{package}\"\nversion = \"")).expect(package);
    entry.split('"').next().expect("a version ends with a quote")
}
