//! Elementary types: byte order, strings, and reading past the end.

use amqp::primitives::{
    DecodeError, Reader, put_long_str, put_short_bytes, put_short_str, put_u8, put_u16, put_u32,
    put_u64,
};

#[test]
fn integers_are_in_network_order() {
    let mut out = Vec::new();
    put_u8(&mut out, 0x01);
    put_u16(&mut out, 0x0203);
    put_u32(&mut out, 0x0405_0607);
    put_u64(&mut out, 0x0809_0A0B_0C0D_0E0F);
    assert_eq!(out, (1..=15).collect::<Vec<u8>>());

    let mut reader = Reader::new(&out);
    assert_eq!(reader.u8(), Ok(0x01));
    assert_eq!(reader.u16(), Ok(0x0203));
    assert_eq!(reader.u32(), Ok(0x0405_0607));
    assert_eq!(reader.remaining(), 8);
    assert_eq!(reader.u64(), Ok(0x0809_0A0B_0C0D_0E0F));
    assert!(reader.is_empty());
    assert_eq!(reader.u8(), Err(DecodeError::Truncated));
}

#[test]
fn signed_integers_and_floats_keep_their_sign() {
    let mut reader = Reader::new(&[0xFF; 15]);
    assert_eq!(reader.i8(), Ok(-1));
    assert_eq!(reader.i16(), Ok(-1));
    assert_eq!(reader.i32(), Ok(-1));
    assert_eq!(reader.i64(), Ok(-1));
    let floats = [&(-1.5f32).to_be_bytes()[..], &(-2.5f64).to_be_bytes()].concat();
    let mut reader = Reader::new(&floats);
    assert_eq!((reader.f32(), reader.f64()), (Ok(-1.5), Ok(-2.5)));
}

#[test]
fn strings_begin_with_their_length() {
    let mut out = Vec::new();
    put_short_str(&mut out, "a\u{e9}");
    put_short_bytes(&mut out, b"\xff");
    put_long_str(&mut out, b"long");
    assert_eq!(out, b"\x03a\xc3\xa9\x01\xff\0\0\0\x04long");

    let mut reader = Reader::new(&out);
    assert_eq!(reader.short_str(), Ok("a\u{e9}"));
    let mut copy = reader;
    assert_eq!(copy.short_str(), Err(DecodeError::MalformedUtf8));
    assert_eq!(reader.short_bytes(), Ok(&b"\xff"[..]));
    assert_eq!(reader.rest(), b"\0\0\0\x04long");
    assert_eq!(reader.long_str(), Ok(&b"long"[..]));
}

#[test]
fn string_longer_than_the_input_is_truncated() {
    assert_eq!(Reader::new(b"\x02a").short_bytes(), Err(DecodeError::Truncated));
    assert_eq!(Reader::new(b"\0\0\0\x02a").long_str(), Err(DecodeError::Truncated));
    assert_eq!(Reader::new(b"\xff\xff\xff\xff").long_str(), Err(DecodeError::Truncated));
}

#[test]
fn short_string_of_255_bytes_fits() {
    let mut out = Vec::new();
    put_short_str(&mut out, &"n".repeat(255));
    assert_eq!((out.len(), out[0]), (256, 255));
}

#[test]
#[cfg(debug_assertions)]
#[should_panic = "a short string of 256"]
fn short_string_that_is_too_long_fails_a_debug_assertion() {
    put_short_bytes(&mut Vec::new(), &[0; 256]);
}

#[test]
#[cfg(not(debug_assertions))]
fn short_string_that_is_too_long_is_cut() {
    let mut out = Vec::new();
    put_short_bytes(&mut out, &[7; 300]);
    assert_eq!((out.len(), out[0]), (256, 255));
    out.clear();
    put_short_str(&mut out, &"\u{e9}".repeat(128));
    assert_eq!((out.len(), out[0]), (255, 254));
    assert!(Reader::new(&out).short_str().is_ok());
}
