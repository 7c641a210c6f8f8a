//! Field tables, arrays and content headers, against a naive reader that keeps everything.

use amqp::content_header::{ContentHeader, write_content_header};
use amqp::frame::split_frame;
use amqp::limits::TABLE_DEPTH_MAX;
use amqp::properties::Properties;
use amqp::table::{ArrayBuilder, ArrayRef, TableBuilder, TableRef, Value};

use crate::primitives_model::{ModelTable, ModelValue, delivered, table_octets};

/// Checks bytes as a table, an array, properties and a content header.
pub fn check(bytes: &[u8]) {
    table(bytes);
    array(bytes);
    properties(bytes);
    header(bytes);
}

fn table(bytes: &[u8]) {
    let model = Naive(bytes).table(1);
    let Ok(table) = TableRef::from_bytes(bytes) else {
        return assert_eq!(model, None, "a table is refused");
    };
    let model = model.expect("what is no table is refused");
    let fields = table.iter().count();
    assert_eq!((table.len(), table.is_empty()), (fields, bytes.is_empty()));
    assert_eq!(fields, model.len());
    let expected = table_octets(&delivered(&model));
    let normalised = table.normalised();
    assert_eq!(normalised.as_ref().as_bytes(), expected);
    assert_eq!(table.needs_normalising(), expected != bytes);
    assert!(!normalised.as_ref().needs_normalising());
    let mut builder = TableBuilder::new();
    for ((key, value), (named, _)) in table.iter().zip(&model) {
        assert_eq!(key, named);
        builder.insert(key, value);
        if let Ok(name) = std::str::from_utf8(key) {
            let first = table.iter().find(|(other, _)| *other == key).map(|(_, value)| value);
            assert_eq!(table.get(name), first, "of several the first");
        }
    }
    let built = builder.finish();
    // A number or a truth has several forms; what they say is the same.
    assert_eq!(format!("{built:?}"), format!("{table:?}"));
    assert!(TableRef::from_bytes(built.as_ref().as_bytes()).is_ok());
}

fn array(bytes: &[u8]) {
    let model = Naive(bytes).array(1);
    let Ok(array) = ArrayRef::from_bytes(bytes) else {
        return assert_eq!(model, None, "an array is refused");
    };
    let model = model.expect("what is no array is refused");
    assert_eq!((array.len(), array.is_empty()), (model.len(), bytes.is_empty()));
    let mut builder = ArrayBuilder::new();
    array.iter().for_each(|value: Value<'_>| {
        builder.push(value);
    });
    assert_eq!(format!("{:?}", builder.finish()), format!("{array:?}"));
}

fn properties(bytes: &[u8]) {
    let Ok(properties) = Properties::parse(bytes) else { return };
    let encoded = |properties: &Properties<'_>| {
        let mut out = Vec::new();
        properties.encode(&mut out);
        out
    };
    let plain = encoded(&properties);
    assert_eq!(Properties::parse(&plain), Ok(properties));
    let mut normalised = Vec::new();
    properties.encode_normalised(&mut normalised);
    assert_eq!(properties.needs_normalising(bytes), normalised != bytes);
    let read = Properties::parse(&normalised).expect("what is delivered is well-formed");
    assert!(!read.needs_normalising(&normalised));
    let bare = |properties: Properties<'_>| encoded(&Properties { headers: None, ..properties });
    assert_eq!(bare(read), bare(properties), "only headers change");
}

fn header(bytes: &[u8]) {
    let Ok(header) = ContentHeader::parse(bytes) else {
        return assert!(bytes.len() < 12, "any twelve bytes are a header");
    };
    properties(header.properties);
    let mut frame = Vec::new();
    write_content_header(&mut frame, 1, header.body_size, header.properties);
    let (frame, _) = split_frame(&frame, u32::MAX).unwrap().expect("a whole frame");
    let read = ContentHeader::parse(frame.payload).unwrap();
    assert_eq!((read.body_size, read.properties), (header.body_size, header.properties));
}

/// Reads tables by the letter, and keeps everything.
struct Naive<'a>(&'a [u8]);

impl<'a> Naive<'a> {
    fn table(mut self, depth: usize) -> Option<ModelTable> {
        let mut fields = Vec::new();
        while !self.0.is_empty() {
            let [len] = *self.take(1)? else { return None };
            let key = self.take(usize::from(len))?.to_vec();
            fields.push((key, self.value(depth)?));
        }
        (depth <= TABLE_DEPTH_MAX).then_some(fields)
    }

    fn array(mut self, depth: usize) -> Option<Vec<ModelValue>> {
        let mut values = Vec::new();
        while !self.0.is_empty() {
            values.push(self.value(depth)?);
        }
        (depth <= TABLE_DEPTH_MAX).then_some(values)
    }

    fn value(&mut self, depth: usize) -> Option<ModelValue> {
        let [tag] = *self.take(1)? else { return None };
        let size = match tag {
            b'V' => 0,
            b't' | b'b' | b'B' => 1,
            b's' | b'u' => 2,
            b'I' | b'i' | b'f' => 4,
            b'D' => 5,
            b'l' | b'L' | b'd' | b'T' => 8,
            b'S' | b'x' => return Some(ModelValue::Sized(tag, self.sized()?.to_vec())),
            // So deep that it is refused with any content.
            b'F' | b'A' if depth > TABLE_DEPTH_MAX => return None,
            b'F' => return Some(ModelValue::Table(Naive(self.sized()?).table(depth + 1)?)),
            b'A' => return Some(ModelValue::Array(Naive(self.sized()?).array(depth + 1)?)),
            _ => return None,
        };
        let bytes = self.take(size)?;
        let is_finite = match tag {
            b'f' => f32::from_be_bytes(bytes.try_into().ok()?).is_finite(),
            b'd' => f64::from_be_bytes(bytes.try_into().ok()?).is_finite(),
            _ => true,
        };
        is_finite.then(|| ModelValue::Fixed(tag, bytes.to_vec()))
    }

    fn sized(&mut self) -> Option<&'a [u8]> {
        let size = u32::from_be_bytes(self.take(4)?.try_into().ok()?);
        self.take(usize::try_from(size).ok()?)
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }
}
