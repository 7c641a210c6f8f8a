//! The hot path of a broker: a message in, a message out.
//!
//! `decode publish` splits the three frames of a message off the input, decodes the method and the
//! properties; `encode deliver` appends the three frames to a buffer that is reused. Both do what the
//! session does for every message, and neither allocates.

use std::hint::black_box;

use amqp::content_header::{ContentHeader, write_content_header};
use amqp::frame::{split_frame, write_body_frames};
use amqp::method::{BasicAck, BasicDeliver, BasicPublish, Method, write_method};
use amqp::properties::Properties;
use amqp::table::{Table, TableBuilder, Value};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const FRAME_MAX: u32 = 131_072;

fn headers() -> Table {
    TableBuilder::new()
        .insert("attempt", Value::I32(3))
        .insert("trace-id", Value::LongStr(b"4bf92f3577b34da6a3ce929d0e0e4736"))
        .finish()
}

/// Persistent JSON, as most publishers send it.
fn plain_properties() -> Properties<'static> {
    Properties {
        content_type: Some(b"application/json"),
        delivery_mode: Some(2),
        ..Properties::default()
    }
}

fn encoded(properties: &Properties<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    properties.encode(&mut out);
    out
}

fn publish(body: &[u8], properties: &[u8]) -> Vec<u8> {
    let method = BasicPublish {
        exchange: b"amq.topic",
        routing_key: b"orders.eu.new",
        mandatory: false,
        immediate: false,
    };
    let mut out = Vec::new();
    write_method(&mut out, 1, &method.into());
    write_content_header(&mut out, 1, body.len() as u64, properties);
    write_body_frames(&mut out, 1, body, FRAME_MAX - 8);
    out
}

/// Facts about a published message that need no copy.
fn decode_message(input: &[u8]) -> Option<(Method<'_>, ContentHeader<'_>, Properties<'_>, &[u8])> {
    let (frame, method_size) = split_frame(input, FRAME_MAX).ok()??;
    let method = Method::decode(frame.payload).ok()?;
    let input = input.get(method_size..)?;
    let (frame, header_size) = split_frame(input, FRAME_MAX).ok()??;
    let header = ContentHeader::parse(frame.payload).ok()?;
    let properties = Properties::parse(header.properties).ok()?;
    let (frame, _) = split_frame(input.get(header_size..)?, FRAME_MAX).ok()??;
    Some((method, header, properties, frame.payload))
}

fn deliver(out: &mut Vec<u8>, delivery_tag: u64, properties: &[u8], body: &[u8]) {
    let method = BasicDeliver {
        consumer_tag: "amq.ctag-x0Y9-fJ0b8KcbO2sVZ6a1w",
        delivery_tag,
        redelivered: false,
        exchange: b"amq.topic",
        routing_key: b"orders.eu.new",
    };
    write_method(out, 1, &method.into());
    write_content_header(out, 1, body.len() as u64, properties);
    write_body_frames(out, 1, body, FRAME_MAX - 8);
}

fn decode(c: &mut Criterion) {
    let mut group = c.benchmark_group("decode publish");
    group.throughput(Throughput::Elements(1));
    let headers = headers();
    let plain = encoded(&plain_properties());
    let with_headers =
        encoded(&Properties { headers: Some(headers.as_ref()), ..plain_properties() });
    for (name, size, properties) in [
        ("16 B", 16, &plain),
        ("1 KB", 1024, &plain),
        ("16 B with headers", 16, &with_headers),
        ("1 KB with headers", 1024, &with_headers),
    ] {
        let input = publish(&vec![7; size], properties);
        assert!(decode_message(&input).is_some());
        group.bench_function(name, |b| b.iter(|| black_box(decode_message(black_box(&input)))));
    }
    group.finish();
}

fn encode(c: &mut Criterion) {
    let mut group = c.benchmark_group("encode deliver");
    group.throughput(Throughput::Elements(1));
    let properties = encoded(&plain_properties());
    for (name, size) in [("16 B", 16), ("1 KB", 1024)] {
        let body = vec![7; size];
        let mut out = Vec::with_capacity(8 * 1024);
        let mut delivery_tag = 0;
        group.bench_function(name, |b| {
            b.iter(|| {
                out.clear();
                delivery_tag += 1;
                deliver(
                    &mut out,
                    black_box(delivery_tag),
                    black_box(&properties),
                    black_box(&body),
                );
                black_box(out.len())
            });
        });
    }
    group.finish();
}

fn small(c: &mut Criterion) {
    let mut ack = Vec::new();
    write_method(&mut ack, 1, &BasicAck { delivery_tag: 9, multiple: false }.into());
    c.bench_function("decode ack", |b| {
        b.iter(|| {
            let frame = split_frame(black_box(&ack), FRAME_MAX);
            black_box(frame.ok().flatten().map(|(frame, _)| Method::decode(frame.payload)))
        });
    });
    let table = headers();
    c.bench_function("find a header that does not need normalising", |b| {
        b.iter(|| {
            let table = black_box(&table).as_ref();
            black_box((table.needs_normalising(), table.get("trace-id")))
        });
    });
    c.bench_function("normalise two headers", |b| {
        b.iter(|| black_box(black_box(&table).as_ref().normalised()));
    });
}

criterion_group!(benches, decode, encode, small);
criterion_main!(benches);
