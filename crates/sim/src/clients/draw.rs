//! The clients of a run.

use simdisk::Random;

use crate::clients::client::{Client, Part};
use crate::clients::topology::{CLEAN, END, HOP, REJECT, WORK};

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
