//! Ports that belong to one test, for listeners that end and come back.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Below the ports that systems give to outgoing connections: one of those can be in use whenever a listener is down.
const FIRST: u32 = 10_000;
const COUNT: u32 = 22_000;
/// Ports between processes that start one after the other.
const STRIDE: u32 = 61;
/// An address at which no test listens otherwise.
const OWNER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// A port of 127.0.0.1 that no other test has.
///
/// It is owned as long as the same port of another address of this machine is listened at, as in `tests/machine/ports.py`.
#[derive(Debug)]
pub(super) struct OwnedPort {
    pub(super) number: u16,
    /// `None` where the machine has no such address.
    owner: Option<TcpListener>,
}

impl OwnedPort {
    pub(super) fn draw() -> Self {
        static DRAWN: AtomicU32 = AtomicU32::new(0);
        let begin = std::process::id() % COUNT * STRIDE;
        let mut candidates = (0..COUNT)
            .map(|_| FIRST + (begin + DRAWN.fetch_add(1, Relaxed)) % COUNT)
            .map(|port| u16::try_from(port).unwrap());
        candidates.find_map(Self::own).unwrap()
    }

    fn own(number: u16) -> Option<Self> {
        let owner = match TcpListener::bind(SocketAddr::from((OWNER, number))) {
            Ok(owner) => Some(owner),
            Err(error) if error.kind() == ErrorKind::AddrNotAvailable => None,
            Err(_) => return None,
        };
        let is_free = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, number))).is_ok();
        is_free.then_some(Self { number, owner })
    }
}

#[test]
fn owned_port_is_drawn_once() {
    let port = OwnedPort::draw();
    assert!(port.owner.is_none() || OwnedPort::own(port.number).is_none());
    assert_ne!(OwnedPort::draw().number, port.number);
}
