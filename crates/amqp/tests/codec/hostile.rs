//! Malformed input: arbitrary octets, and well-formed input with one octet changed.
//!
//! Nothing may panic, and accepted input must be readable to the end and encode again.

use amqp::content_header::ContentHeader;
use amqp::frame::{FrameType, split_frame};
use amqp::method::{METHODS, Method};
use amqp::properties::Properties;
use amqp::table::{ArrayRef, TableRef};
use amqp::{protocol_header, sasl};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::generate::{Arguments, model_table};
use crate::primitives_model::table_octets;

fn read_everything(payload: &[u8]) {
    if let Ok(table) = TableRef::from_bytes(payload) {
        let printed = format!("{table:?}");
        assert_eq!(printed, format!("{:?}", table.to_table()));
        assert!(!table.normalised().as_ref().needs_normalising());
    }
    if let Ok(array) = ArrayRef::from_bytes(payload) {
        assert_eq!(array.to_array().as_ref().iter().count(), array.len());
    }
    if let Ok(properties) = Properties::parse(payload) {
        let mut out = Vec::new();
        properties.encode(&mut out);
        assert_eq!(Properties::parse(&out), Ok(properties));
    }
    match Method::decode(payload) {
        Ok(method) => {
            let mut out = Vec::new();
            method.encode(&mut out);
            assert_eq!(Method::decode(&out), Ok(method));
        }
        Err(error) => assert!(error.explanation(payload).len() < 1000),
    }
    let _ = ContentHeader::parse(payload);
    let _ = protocol_header::parse(payload);
    let _ = sasl::parse_plain(payload);
    let _ = sasl::parse_amqplain(payload);
    if let Ok(Some((frame, size))) = split_frame(payload, 4096) {
        assert_eq!(size, frame.payload.len() + 8);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn decoders_accept_arbitrary_bytes_without_panic(octets in vec(any::<u8>(), 0..200)) {
        read_everything(&octets);
    }

    #[test]
    fn method_decoder_accepts_arbitrary_arguments_without_panic(
        place in 0..METHODS.len(),
        arguments in vec(prop_oneof![0..4u8, any::<u8>()], 0..60),
    ) {
        let (id, _) = METHODS[place];
        let ids = [id.class_id.to_be_bytes(), id.method_id.to_be_bytes()].concat();
        read_everything(&[&ids[..], &arguments].concat());
    }

    #[test]
    fn table_decoder_accepts_arbitrary_bytes_without_panic(
        octets in vec(prop::sample::select(b"\0\0\0\x01\x02\x03kFASxtTlLdDV".to_vec()), 0..80),
    ) {
        read_everything(&octets);
    }

    #[test]
    fn decoders_accept_one_changed_byte_without_panic(
        model in model_table(),
        at in any::<prop::sample::Index>(),
        octet in any::<u8>(),
    ) {
        let mut octets = table_octets(&model);
        if !octets.is_empty() {
            let at = at.index(octets.len());
            octets[at] = octet;
        }
        read_everything(&octets);
    }
}

proptest! {
    #[test]
    fn method_decoder_accepts_one_changed_byte_without_panic(
        arguments in Arguments::any(),
        at in any::<prop::sample::Index>(),
        octet in any::<u8>(),
    ) {
        for method in arguments.methods() {
            let mut octets = Vec::new();
            method.encode(&mut octets);
            let at = at.index(octets.len());
            octets[at] = octet;
            read_everything(&octets);
        }
    }
}

#[test]
fn announced_size_allocates_nothing() {
    for frame_type in [FrameType::Method, FrameType::Header, FrameType::Body] {
        let input = [frame_type.octet(), 0, 1, 0xFF, 0xFF, 0xFF, 0xFF];
        assert_eq!(split_frame(&input, u32::MAX), Ok(None));
    }
}
