//! Subjects of a measurement: a Leveret or the floor, started anew for each load, or a running RabbitMQ.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::loads::ForWhom;
use crate::broker_process::BrokerProcess;
use crate::process::Process;

/// Longest time from the start of the floor to listening.
const START_TIME_MAX: Duration = Duration::from_secs(10);

/// Interval between two attempts.
const TRY_INTERVAL: Duration = Duration::from_millis(20);

/// Time between the start of a program and the first look at its memory.
const SETTLE: Duration = Duration::from_millis(500);

/// A program that is measured.
#[derive(Debug)]
pub(super) struct Subject {
    /// The heading of its column.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
}

/// Origin of a subject.
#[derive(Debug)]
pub(super) enum Kind {
    /// A build of `leveret`.
    Leveret(PathBuf),
    /// A broker that runs, at this address, as this process.
    Rabbitmq { address: String, process: u32 },
    /// A program that hands each message on to the only consumer, and is given the address.
    Floor(PathBuf),
}

/// A subject at work.
pub(super) struct Running {
    address: String,
    /// Process id.
    pub(super) id: u32,
    /// Process that ends with the subject.
    started: Started,
}

enum Started {
    Leveret(BrokerProcess),
    Floor(#[expect(dead_code, reason = "is there to be dropped")] Process),
    Elsewhere,
}

impl Subject {
    /// A RabbitMQ on this machine.
    ///
    /// # Errors
    /// When no process listens at the address, or its process id cannot be found.
    pub(super) fn rabbitmq(address: &str) -> Result<Self> {
        let (_, port) = address.rsplit_once(':').context("--rabbitmq: expected HOST:PORT")?;
        let process = listener(port.parse().context("--rabbitmq: expected HOST:PORT")?)?;
        let address = address.to_owned();
        Ok(Self { name: "RabbitMQ", kind: Kind::Rabbitmq { address, process } })
    }

    /// True if the subject is made for the load.
    pub(super) fn can(&self, for_whom: ForWhom) -> bool {
        match self.kind {
            Kind::Leveret(_) => true,
            Kind::Rabbitmq { .. } => for_whom != ForWhom::Leveret,
            Kind::Floor(_) => for_whom == ForWhom::All,
        }
    }

    /// Starts it if it does not run, with its output and its data in `folder`.
    ///
    /// # Errors
    /// When it does not start.
    pub(super) fn run(&self, folder: &Path) -> Result<Running> {
        match &self.kind {
            Kind::Leveret(binary) => {
                let log = folder.join("broker.log");
                fs::write(&log, "")?;
                let broker = BrokerProcess::start(binary, &log)?;
                thread::sleep(SETTLE);
                let (address, id) = (broker.amqp_address.clone(), broker.id());
                Ok(Running { address, id, started: Started::Leveret(broker) })
            }
            Kind::Rabbitmq { address, process } => {
                Ok(Running { address: address.clone(), id: *process, started: Started::Elsewhere })
            }
            Kind::Floor(program) => {
                let address = free_address()?;
                let mut command = Command::new(program);
                command.arg(&address);
                let process = Process::start(command, &folder.join("floor.log"))?;
                await_listener(&address)?;
                Ok(Running { address, id: process.id(), started: Started::Floor(process) })
            }
        }
    }
}

impl Running {
    /// Address for `leveret-perf`.
    pub(super) fn uri(&self) -> String {
        format!("amqp://guest:guest@{}/%2f", self.address)
    }

    /// Resident bytes now.
    ///
    /// # Errors
    /// When it is gone.
    pub(super) fn resident(&self) -> Result<u64> {
        let path = format!("/proc/{}/status", self.id);
        let status = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        Ok(kib.with_context(|| format!("cannot understand {path}"))? * 1024)
    }

    /// Ends it if it was started here.
    ///
    /// # Errors
    /// When it does not end as it should.
    pub(super) fn stop(self) -> Result<()> {
        match self.started {
            Started::Leveret(broker) => broker.stop(),
            Started::Floor(_) | Started::Elsewhere => Ok(()),
        }
    }
}

fn free_address() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no port is free")?;
    Ok(listener.local_addr()?.to_string())
}

fn await_listener(address: &str) -> Result<()> {
    let began = Instant::now();
    while TcpStream::connect(address).is_err() {
        ensure!(began.elapsed() < START_TIME_MAX, "no process listens on {address}");
        thread::sleep(TRY_INTERVAL);
    }
    Ok(())
}

/// The process that listens on a port of this machine.
fn listener(port: u16) -> Result<u32> {
    let mut inodes = Vec::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        inodes.extend(listening_inodes(&fs::read_to_string(table).unwrap_or_default(), port));
    }
    ensure!(!inodes.is_empty(), "no process listens on port {port} of this machine");
    for process in fs::read_dir("/proc")?.flatten() {
        let Some(id) = process.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Ok(files) = fs::read_dir(process.path().join("fd")) else {
            continue;
        };
        let targets = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
        for target in targets {
            let is_it = |inode: &String| target.to_str() == Some(&format!("socket:[{inode}]"));
            if inodes.iter().any(is_it) {
                return Ok(id);
            }
        }
    }
    bail!("cannot see which process listens on port {port}: run this as its user, or as root")
}

/// The inodes of sockets that listen on the port, in a table of the kernel.
fn listening_inodes(table: &str, port: u16) -> Vec<String> {
    /// State LISTEN as the kernel writes it.
    const LISTEN: &str = "0A";
    let inode = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (_, local) = fields.get(1)?.rsplit_once(':')?;
        let is_it = u16::from_str_radix(local, 16) == Ok(port) && *fields.get(3)? == LISTEN;
        is_it.then(|| fields.get(9).map(|&inode| inode.to_owned()))?
    };
    table.lines().skip(1).filter_map(inode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listener_of_a_port_is_in_the_kernels_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            \x20  0: 0100007F:1733 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0 0 4711 1 0 100 0\n\
            \x20  1: 0100007F:1733 0100007F:9000 01 00000000:00000000 00:00000000 00000000  0 0 4712 1 0 100 0\n";
        assert_eq!(listening_inodes(table, 0x1733), ["4711"]);
        assert_eq!(listening_inodes(table, 0x9000), Vec::<String>::new());
    }

    #[test]
    fn process_is_found_by_its_port() {
        let listener_here = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener_here.local_addr().unwrap().port();
        assert_eq!(listener(port).unwrap(), std::process::id());
    }
}
