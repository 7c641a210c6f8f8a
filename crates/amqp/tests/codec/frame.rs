//! Frames: split, written, cut and joined anywhere, and the texts of their errors.

use amqp::frame::{
    Frame, FrameError, FrameType, begin_frame, end_frame, split_frame, write_body_frames,
    write_heartbeat,
};
use amqp::limits::{FRAME_HEADER_SIZE, FRAME_OVERHEAD};
use amqp::reply_code::ReplyCode;
use proptest::collection::vec;
use proptest::prelude::*;

const PAYLOAD_MAX: u32 = 131_072;

type OwnedFrame = (FrameType, u16, Vec<u8>);

fn any_frame() -> impl Strategy<Value = OwnedFrame> {
    (0..4usize, any::<u16>(), vec(any::<u8>(), 12..60)).prop_map(|(kind, channel, payload)| {
        match kind {
            0 => (FrameType::Method, channel, payload),
            1 => (FrameType::Header, channel, payload),
            2 => (FrameType::Body, channel, payload),
            _ => (FrameType::Heartbeat, channel, Vec::new()),
        }
    })
}

fn frame_bytes(frame_type: u8, channel: u16, payload: &[u8], end: u8) -> Vec<u8> {
    let size = u32::try_from(payload.len()).expect("small").to_be_bytes();
    [&[frame_type][..], &channel.to_be_bytes(), &size, payload, &[end]].concat()
}

fn split_all(input: &[u8]) -> (Vec<OwnedFrame>, usize) {
    let mut frames = Vec::new();
    let mut at = 0;
    while let Some((frame, size)) = split_frame(&input[at..], PAYLOAD_MAX).expect("well-formed") {
        frames.push((frame.frame_type, frame.channel, frame.payload.to_vec()));
        at += size;
    }
    (frames, at)
}

proptest! {
    #[test]
    fn frames_round_trip(frames in vec(any_frame(), 0..6)) {
        let mut out = Vec::new();
        let mut expected = Vec::new();
        for (frame_type, channel, payload) in &frames {
            let start = begin_frame(&mut out, *frame_type, *channel);
            out.extend(payload);
            end_frame(&mut out, start);
            expected.extend(frame_bytes(frame_type.octet(), *channel, payload, 0xCE));
        }
        prop_assert_eq!(&out, &expected);
        let (read, consumed) = split_all(&out);
        prop_assert_eq!(read, frames);
        prop_assert_eq!(consumed, out.len());
    }

    #[test]
    fn frames_do_not_depend_on_the_chunks_of_the_input(
        frames in vec(any_frame(), 0..6),
        chunk_sizes in vec(1..40usize, 1..20),
    ) {
        let input: Vec<u8> = frames
            .iter()
            .flat_map(|(kind, channel, payload)| frame_bytes(kind.octet(), *channel, payload, 0xCE))
            .collect();
        let mut buffer = Vec::new();
        let mut read = Vec::new();
        let mut rest = input.as_slice();
        let mut chunk_sizes = chunk_sizes.iter().cycle();
        while !rest.is_empty() {
            let size = (*chunk_sizes.next().unwrap()).min(rest.len());
            let (chunk, later) = rest.split_at(size);
            buffer.extend(chunk);
            rest = later;
            let (frames, consumed) = split_all(&buffer);
            read.extend(frames);
            buffer.drain(..consumed);
        }
        prop_assert_eq!(read, frames);
        prop_assert!(buffer.is_empty());
    }

    #[test]
    fn strict_prefixes_of_a_frame_are_incomplete(
        (kind, channel, payload) in any_frame(),
        cut in any::<prop::sample::Index>(),
    ) {
        let whole = frame_bytes(kind.octet(), channel, &payload, 0xCE);
        let prefix = &whole[..cut.index(whole.len())];
        prop_assert_eq!(split_frame(prefix, PAYLOAD_MAX), Ok(None));
    }

    #[test]
    fn body_frames_hold_the_body_in_order(
        body in vec(any::<u8>(), 0..300),
        payload_max in 1..120u32,
        channel in any::<u16>(),
    ) {
        let mut out = Vec::new();
        write_body_frames(&mut out, channel, &body, payload_max);
        let (frames, consumed) = split_all(&out);
        prop_assert_eq!(consumed, out.len());
        prop_assert_eq!(frames.len(), body.len().div_ceil(payload_max as usize));
        for (kind, on, payload) in &frames {
            prop_assert_eq!((*kind, *on), (FrameType::Body, channel));
            prop_assert!(payload.len() <= payload_max as usize);
        }
        let payloads: Vec<_> = frames.into_iter().map(|(.., payload)| payload).collect();
        prop_assert_eq!(payloads.concat(), body);
    }
}

#[test]
fn heartbeat_is_eight_bytes_on_channel_0() {
    let mut out = Vec::new();
    write_heartbeat(&mut out);
    assert_eq!(out, [8, 0, 0, 0, 0, 0, 0, 0xCE]);
    let frame = Frame { frame_type: FrameType::Heartbeat, channel: 0, payload: &[] };
    assert_eq!(split_frame(&out, PAYLOAD_MAX), Ok(Some((frame, FRAME_OVERHEAD))));
}

#[test]
fn frame_types_are_four() {
    for octet in 0..=255 {
        let frame = frame_bytes(octet, 1, b"", 0xCE);
        let known = [1, 2, 3, 8].contains(&octet);
        assert_eq!(FrameType::from_octet(octet).map(FrameType::octet), known.then_some(octet));
        let split = split_frame(&frame, PAYLOAD_MAX);
        assert_eq!(matches!(split, Err(FrameError::UnknownType { .. })), !known, "type {octet}");
    }
}

#[test]
fn payload_that_is_too_large_is_refused_from_the_frame_header() {
    let mut input = vec![3, 0, 1, 0, 2, 0, 1];
    assert_eq!(
        split_frame(&input, PAYLOAD_MAX),
        Err(FrameError::TooLarge { frame_type: 3, size: PAYLOAD_MAX + 1, max: PAYLOAD_MAX })
    );
    for known in 0..FRAME_HEADER_SIZE {
        assert_eq!(split_frame(&input[..known], PAYLOAD_MAX), Ok(None));
    }
    input[6] = 0;
    assert_eq!(split_frame(&input, PAYLOAD_MAX), Ok(None), "exactly the limit is waited for");
}

#[test]
fn payload_of_exactly_the_limit_is_accepted() {
    let input = frame_bytes(3, 1, &vec![7; PAYLOAD_MAX as usize], 0xCE);
    let (frame, size) = split_frame(&input, PAYLOAD_MAX).unwrap().unwrap();
    assert_eq!((frame.payload.len(), size), (PAYLOAD_MAX as usize, input.len()));
}

/// Each input was sent to RabbitMQ 4.3.6 with frame_max 131072; the texts are its own.
#[test]
fn frame_error_texts_are_those_of_rabbitmq() {
    let long = |octet: u8, size: usize, end: u8| frame_bytes(1, 1, &vec![octet; size], end);
    let observed: &[(Vec<u8>, &str)] = &[
        (
            frame_bytes(1, 1, &[0, 20, 0, 40], 0),
            "type 1, all octets = <<0,20,0,40>>: {invalid_frame_end_marker,0}",
        ),
        (
            long(b'a', 256, 0),
            "type 1, first 16 octets = <<\"aaaaaaaaaaaaaaaa\">>: {invalid_frame_end_marker,0}",
        ),
        (
            frame_bytes(3, 1, b"hi", 1),
            "type 3, all octets = <<\"hi\">>: {invalid_frame_end_marker,1}",
        ),
        (frame_bytes(9, 1, b"hi", 0xCE), "type 9, all octets = <<\"hi\">>: unknown_frame"),
        (
            frame_bytes(9, 1, &[0; 20], 0xCE),
            "type 9, first 16 octets = <<0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0>>: unknown_frame",
        ),
        (
            frame_bytes(9, 1, &[b'b'; 16], 0xCE),
            "type 9, all octets = <<\"bbbbbbbbbbbbbbbb\">>: unknown_frame",
        ),
        (
            frame_bytes(9, 1, &[b'b'; 17], 0xCE),
            "type 9, first 16 octets = <<\"bbbbbbbbbbbbbbbb\">>: unknown_frame",
        ),
        (frame_bytes(8, 0, b"hi", 0xCE), "type 8, all octets = <<\"hi\">>: unknown_frame"),
        (frame_bytes(1, 1, b"", 0xCE), "type 1, all octets = <<>>: unknown_frame"),
        (frame_bytes(1, 1, &[0, 50, 0], 0xCE), "type 1, all octets = <<0,50,0>>: unknown_frame"),
        (
            frame_bytes(2, 1, &[0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0], 0xCE),
            "type 2, all octets = <<0,60,0,0,0,0,0,0,0,0,0>>: unknown_frame",
        ),
        (
            vec![1, 0, 1, 255, 255, 255, 255],
            "type 1, all octets = <<>>: {frame_too_large,4294967295,131064}",
        ),
        (
            vec![9, 0, 1, 255, 255, 255, 255],
            "type 9, all octets = <<>>: {frame_too_large,4294967295,131064}",
        ),
        (vec![3, 0, 1, 0, 2, 0, 1], "type 3, all octets = <<>>: {frame_too_large,131073,131064}"),
    ];
    for (input, text) in observed {
        let error = split_frame(input, PAYLOAD_MAX).unwrap_err();
        assert_eq!(error.to_string(), *text);
    }
    let error = split_frame(&observed[3].0, PAYLOAD_MAX).unwrap_err();
    assert_eq!(
        ReplyCode::FrameError.text(&error.to_string()),
        "FRAME_ERROR - type 9, all octets = <<\"hi\">>: unknown_frame"
    );
}

#[test]
fn frame_error_keeps_only_the_bytes_that_it_prints() {
    let Err(FrameError::UnknownType { bytes, .. }) =
        split_frame(&frame_bytes(9, 1, &[1; 1000], 0xCE), PAYLOAD_MAX)
    else {
        panic!("an unknown type");
    };
    assert_eq!(bytes.as_bytes(), [1; 16]);
}

#[test]
#[should_panic = "room for payload"]
fn body_frames_panic_on_a_payload_limit_of_0() {
    write_body_frames(&mut Vec::new(), 1, b"x", 0);
}
