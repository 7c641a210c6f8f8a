//! Cases of the codec: a message in, a message out, as the session does both.

use std::hint::black_box;

use amqp::content_header::{ContentHeader, write_content_header};
use amqp::frame::{split_frame, write_body_frames};
use amqp::method::{BasicDeliver, Method, write_method};
use amqp::properties::Properties;

use crate::case::Run;
use crate::samples::{FRAME_MAX, Sample};

/// Splits the frames of a publish and decodes what is in them.
pub(crate) fn decode_publish(sample: &Sample) -> Run {
    let bytes = sample.publish("amq.topic", "orders.eu.new");
    Box::new(move |messages| {
        for _ in 0..messages {
            assert!(black_box(decode(black_box(&bytes))).is_some(), "a publish");
        }
    })
}

fn decode(input: &[u8]) -> Option<(Method<'_>, Properties<'_>, &[u8])> {
    let (frame, method_size) = split_frame(input, FRAME_MAX).ok()??;
    let method = Method::decode(frame.payload).ok()?;
    let input = input.get(method_size..)?;
    let (frame, header_size) = split_frame(input, FRAME_MAX).ok()??;
    let header = ContentHeader::parse(frame.payload).ok()?;
    let properties = Properties::parse(header.properties).ok()?;
    let (frame, _) = split_frame(input.get(header_size..)?, FRAME_MAX).ok()??;
    Some((method, properties, frame.payload))
}

/// Appends the frames of a delivery to a buffer that is used again.
pub(crate) fn encode_deliver(sample: Sample) -> Run {
    let mut out = Vec::new();
    Box::new(move |messages| {
        for delivery_tag in 0..messages {
            if delivery_tag % 64 == 0 {
                out.clear();
            }
            let method = BasicDeliver {
                consumer_tag: "amq.ctag-x0Y9-fJ0b8KcbO2sVZ6a1w",
                delivery_tag: black_box(delivery_tag),
                redelivered: false,
                exchange: b"amq.topic",
                routing_key: b"orders.eu.new",
            };
            write_method(&mut out, 1, &method.into());
            let body = black_box(sample.body());
            write_content_header(&mut out, 1, body.len() as u64, sample.properties());
            write_body_frames(&mut out, 1, body, FRAME_MAX - 8);
        }
        black_box(&out);
    })
}
