//! Cases of the way from bytes to bytes, and of its two ends.

use std::hint::black_box;

use session::{Session, Step};

use crate::bytes::{Clients, acks};
use crate::case::Run;
use crate::commands::BATCH;
use crate::samples::Sample;

const QUEUE: &str = "orders";

/// From bytes to commands.
pub(crate) fn session_publish(sample: &Sample) -> Run {
    let mut clients = Clients::new(1);
    let batch = sample.publish("", QUEUE).repeat(64);
    Box::new(move |messages| {
        let session: &mut Session = clients.session(0);
        let mut out = Vec::new();
        for _ in 0..messages / BATCH {
            let mut input = black_box(batch.as_slice());
            while let Step::Request(request) = session.next(&mut input, &mut out) {
                black_box(&request);
            }
        }
    })
}

/// From bytes to bytes, without acknowledgements.
pub(crate) fn through(sample: &Sample) -> Run {
    let mut clients = Clients::new(2);
    clients.queue(1, QUEUE, false);
    clients.consume(1, QUEUE, true);
    let batch = sample.publish("", QUEUE).repeat(64);
    Box::new(move |messages| {
        for _ in 0..messages / BATCH {
            clients.receive(0, black_box(&batch));
            assert!(clients.write() > batch.len() / 2, "all of them are delivered");
        }
    })
}

/// From bytes to bytes, each confirmed, delivered and acknowledged; with `durable`, by way of the log.
pub(crate) fn through_with_acks(sample: &Sample, durable: bool) -> Run {
    let mut clients = Clients::new(2);
    clients.queue(1, QUEUE, durable);
    if durable {
        clients.sync();
    }
    clients.consume(1, QUEUE, false);
    clients.select_confirms(0);
    let batch = sample.publish("", QUEUE).repeat(64);
    // Made before anything is counted: they are the client's work.
    let mut replies: Vec<Vec<u8>> = (0..256).map(|i| acks(1 + i * BATCH, BATCH)).rev().collect();
    Box::new(move |messages| {
        for _ in 0..messages / BATCH {
            clients.receive(0, black_box(&batch));
            if durable {
                clients.sync();
            }
            assert!(clients.write() > batch.len() / 2, "all of them are delivered");
            let Some(acks) = replies.pop() else { panic!("too few acknowledgements") };
            clients.receive(1, &acks);
            clients.write();
        }
    })
}
