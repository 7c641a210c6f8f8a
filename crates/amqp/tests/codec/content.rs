//! Content headers: written and parsed back, and cut.

use amqp::content_header::{CLASS_BASIC, ContentHeader, write_content_header};
use amqp::frame::{FrameType, split_frame};
use amqp::limits::CONTENT_HEADER_SIZE;
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #[test]
    fn content_header_round_trips(
        channel in any::<u16>(),
        body_size in any::<u64>(),
        properties in vec(any::<u8>(), 0..40),
    ) {
        let mut out = Vec::new();
        write_content_header(&mut out, channel, body_size, &properties);
        let (frame, size) = split_frame(&out, 1000).unwrap().unwrap();
        prop_assert_eq!(size, out.len());
        prop_assert_eq!((frame.frame_type, frame.channel), (FrameType::Header, channel));
        let header = ContentHeader { class_id: CLASS_BASIC, weight: 0, body_size, properties: &properties };
        prop_assert_eq!(ContentHeader::parse(frame.payload), Ok(header));
        for cut in 0..CONTENT_HEADER_SIZE {
            prop_assert!(ContentHeader::parse(&frame.payload[..cut]).is_err());
        }
    }
}

#[test]
fn content_header_class_and_weight_are_not_validated() {
    let header = ContentHeader::parse(&[0, 50, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9]).unwrap();
    assert_eq!((header.class_id, header.weight, header.body_size), (50, 1, 9));
    assert!(header.properties.is_empty());
}
