//! The clients of a run.

use simdisk::Random;

use crate::clients::client::{Client, Part};
use crate::clients::topology::{CLEAN, END, HOP, LATER, REJECT, Topology, WORK};

/// The client that declares the queues, and so many that publish and that consume.
pub(crate) fn draw_clients((publish, consume): (usize, usize), random: &mut Random) -> Vec<Client> {
    let mut clients = vec![Client::new(Part::Declares, Vec::new())];
    clients.extend((0..publish).map(|_| Client::new(Part::Publishes, Vec::new())));
    for _ in 0..consume {
        let all = [WORK[0], WORK[1], END, REJECT, CLEAN, HOP];
        let mut queues: Vec<usize> = Vec::new();
        for queue in all {
            if random.percent(if queue == HOP { 10 } else { 50 }) {
                queues.push(queue);
            }
        }
        clients.push(Client::new(Part::Consumes, queues));
    }
    clients
}

/// Adds so many clients that schedule messages, the queue in which these wait, and those that consume it.
pub(crate) fn add_schedulers(
    seed: u64,
    count: usize,
    topology: &mut Topology,
    clients: &mut Vec<Client>,
) {
    if count == 0 {
        return;
    }
    // A sequence of its own: a seed without schedules has the run that it had before there were any.
    let mut random = Random(seed ^ 0x5C4E);
    topology.add_schedules(random.percent(60));
    let consumers = clients.iter_mut().filter(|client| client.part == Part::Consumes);
    for (number, client) in consumers.enumerate() {
        if number == 0 || random.percent(50) {
            client.consumes.push(LATER);
        }
    }
    clients.extend((0..count).map(|_| Client::new(Part::Schedules, Vec::new())));
}
