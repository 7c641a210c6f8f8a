//! Several clients at once on one broker, in one thread, with the time as an argument.
//!
//! An input is a history: bytes, frames and methods of clients, connections that break, time that
//! passes, policies, a slow disk, restarts. After every step nothing may have been lost or be counted
//! twice (the invariants of the core), the log must give what there is, and the bytes that each client
//! has received must be whole frames in a valid order.

mod broker;
#[allow(unreachable_pub, reason = "shared with the model of the core")]
#[path = "../../../crates/broker/tests/core/disk/driven.rs"]
mod driven;
mod ear;
#[allow(
    unreachable_pub,
    dead_code,
    reason = "shared with the model of the core, which uses all of it"
)]
#[path = "../../../crates/broker/tests/core/disk/log.rs"]
mod log;
mod node;
mod operator;
#[allow(
    unreachable_pub,
    dead_code,
    reason = "shared with the model of the core, which uses all of it"
)]
#[path = "../../../crates/broker/tests/core/disk/page_store.rs"]
mod page_store;
mod peer;
pub mod steps;
mod words;

use arbitrary::{Arbitrary as _, Unstructured};

use self::broker::Broker;
use self::steps::{PEERS, Setup, Step};

/// Longest history, in steps.
const STEPS_MAX: usize = 160;

/// Checks a history.
pub fn check(input: &[u8]) {
    let mut input = Unstructured::new(input);
    let Ok(setup) = Setup::arbitrary(&mut input) else { return };
    let mut broker = Broker::new(setup);
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        let Ok(step) = Step::arbitrary(&mut input) else { break };
        run(&mut broker, step);
        broker.check();
    }
    broker.restart();
    broker.check();
}

fn run(broker: &mut Broker, step: Step) {
    let at = |peer: u8| usize::from(peer) % PEERS;
    match step {
        Step::Bytes { peer, bytes } => broker.receive(at(peer), &bytes),
        Step::Frame { peer, frame_type, channel, payload } => {
            let bytes = words::frame(frame_type, channel, &payload);
            broker.receive(at(peer), &bytes);
        }
        Step::Say(say) => {
            let peer = words::peer(say.who);
            // Clients that have not connected do so, so that most input has an effect.
            if broker.peers[peer].session.is_at_start() {
                broker.connect(peer);
            }
            let frames = words::frames(say, broker.frame_max());
            broker.receive(peer, &frames);
        }
        Step::Cut { peer } => broker.cut(at(peer)),
        Step::Connect { peer } => broker.connect(at(peer)),
        Step::Sleep { time } => broker.sleep(operator::millis(time)),
        Step::Policy { key, choice } => operator::policy(broker, key, choice),
        Step::Restart => broker.restart(),
        Step::Listen { peer, listens } => {
            broker.peers[at(peer)].listens = listens;
            broker.finish();
            broker.read_all();
        }
        Step::Operate { action, choice } => operator::operate(broker, action, choice),
        Step::Disk { is_slow } => {
            broker.disk_is_slow = is_slow;
            broker.finish();
            broker.read_all();
        }
    }
}
