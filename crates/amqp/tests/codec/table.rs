//! Tables and arrays: every type octet, nesting, lying sizes, building, and a naive model.

use amqp::limits::TABLE_DEPTH_MAX;
use amqp::primitives::Reader;
use amqp::table::{ArrayBuilder, ArrayRef, Table, TableBuilder, TableError, TableRef, Value};
use proptest::prelude::*;

use crate::generate::{any_octets, model_table};
use crate::primitives_model::{ModelTable, ModelValue, table_octets};

/// The type octets that RabbitMQ 4.3.6 accepts, each with the size of its value, and its own name
/// for the type. The other 238 were refused, every one.
const TYPES: [(u8, usize, &str); 18] = [
    (b't', 1, "bool"),
    (b'b', 1, "byte"),
    (b'B', 1, "unsignedbyte"),
    (b's', 2, "short"),
    (b'u', 2, "unsignedshort"),
    (b'I', 4, "signedint"),
    (b'i', 4, "unsignedint"),
    (b'l', 8, "long"),
    (b'L', 8, "long"),
    (b'f', 4, "float"),
    (b'd', 8, "double"),
    (b'D', 5, "decimal"),
    (b'S', 4, "longstr"),
    (b'x', 4, "binary"),
    (b'T', 8, "timestamp"),
    (b'F', 4, "table"),
    (b'A', 4, "array"),
    (b'V', 0, "void"),
];

fn array_octets(values: &[u8]) -> Vec<u8> {
    let size = u32::try_from(values.len()).expect("small").to_be_bytes();
    [&b"A"[..], &size, values].concat()
}

fn field(key: &[u8], value: &[u8]) -> Vec<u8> {
    [&[u8::try_from(key.len()).expect("short")][..], key, value].concat()
}

/// `depth` tables inside each other, the innermost empty.
fn nested_tables(depth: usize) -> Vec<u8> {
    let mut octets = Vec::new();
    for _ in 1..depth {
        octets = field(b"k", &sized(b'F', &octets));
    }
    octets
}

fn sized(tag: u8, content: &[u8]) -> Vec<u8> {
    let size = u32::try_from(content.len()).expect("small").to_be_bytes();
    [&[tag][..], &size, content].concat()
}

/// Checks that reading `table` gives the expected fields, compared value by value through the public types.
fn assert_reads_as(table: TableRef<'_>, model: &ModelTable) {
    let read: Vec<_> = table.iter().collect();
    assert_eq!(read.len(), model.len());
    for ((key, value), (model_key, model_value)) in read.into_iter().zip(model) {
        assert_eq!(key, model_key);
        assert_value_is(value, model_value);
    }
}

fn assert_value_is(value: Value<'_>, model: &ModelValue) {
    match (value, model) {
        (Value::Table(table), ModelValue::Table(model)) => assert_reads_as(table, model),
        (Value::Array(array), ModelValue::Array(model)) => {
            assert_eq!(array.len(), model.len());
            array.iter().zip(model).for_each(|(value, model)| assert_value_is(value, model));
        }
        (Value::LongStr(bytes), ModelValue::Sized(b'S', octets))
        | (Value::Binary(bytes), ModelValue::Sized(b'x', octets)) => assert_eq!(bytes, octets),
        (value, ModelValue::Fixed(tag, octets)) => assert_eq!(fixed(value), (*tag, octets.clone())),
        (value, model) => panic!("{value:?} is not {model:?}"),
    }
}

/// Type octet and bytes of a value that has no size, `L` and `l` apart where the model has them
/// apart, and bools as the one octet that tells.
fn fixed(value: Value<'_>) -> (u8, Vec<u8>) {
    match value {
        Value::I8(value) => (b'b', value.to_be_bytes().to_vec()),
        Value::U8(value) => (b'B', value.to_be_bytes().to_vec()),
        Value::I16(value) => (b's', value.to_be_bytes().to_vec()),
        Value::U16(value) => (b'u', value.to_be_bytes().to_vec()),
        Value::I32(value) => (b'I', value.to_be_bytes().to_vec()),
        Value::U32(value) => (b'i', value.to_be_bytes().to_vec()),
        Value::I64(value) => (b'l', value.to_be_bytes().to_vec()),
        Value::F32(value) => (b'f', value.to_be_bytes().to_vec()),
        Value::F64(value) => (b'd', value.to_be_bytes().to_vec()),
        Value::Decimal { scale, value } => (b'D', [&[scale][..], &value.to_be_bytes()].concat()),
        Value::Timestamp(value) => (b'T', value.to_be_bytes().to_vec()),
        Value::Bool(value) => (b't', vec![u8::from(value)]),
        Value::Void => (b'V', Vec::new()),
        Value::LongStr(_) | Value::Binary(_) | Value::Table(_) | Value::Array(_) => {
            panic!("{value:?} has a size")
        }
    }
}

/// The model with what the crate folds together folded: `L` and `l`, and bools.
fn folded(table: &ModelTable) -> ModelTable {
    fn value(model: &ModelValue) -> ModelValue {
        match model {
            ModelValue::Fixed(b'L', octets) => ModelValue::Fixed(b'l', octets.clone()),
            ModelValue::Fixed(b't', octets) => {
                ModelValue::Fixed(b't', vec![u8::from(octets[0] != 0)])
            }
            ModelValue::Table(table) => ModelValue::Table(folded(table)),
            ModelValue::Array(values) => ModelValue::Array(values.iter().map(value).collect()),
            ModelValue::Fixed(..) | ModelValue::Sized(..) => model.clone(),
        }
    }
    table.iter().map(|(key, model)| (key.clone(), value(model))).collect()
}

proptest! {
    #[test]
    fn table_reads_as_the_model_wrote_it(model in model_table()) {
        let octets = table_octets(&model);
        let table = TableRef::from_bytes(&octets).unwrap();
        assert_reads_as(table, &folded(&model));
        prop_assert_eq!(table.len(), model.len());
        prop_assert_eq!(table.is_empty(), model.is_empty());
        let copy = table.to_table();
        prop_assert_eq!(copy.as_ref(), table);
    }

    #[test]
    fn built_table_reads_as_the_inserted_fields(model in model_table()) {
        let octets = table_octets(&model);
        let mut builder = TableBuilder::new();
        for (key, value) in TableRef::from_bytes(&octets).unwrap() {
            builder.insert(key, value);
        }
        let table = builder.finish();
        assert_reads_as(table.as_ref(), &folded(&model));
        prop_assert!(TableRef::from_bytes(table.as_ref().as_bytes()).is_ok());
    }

    #[test]
    fn table_get_finds_the_first_field_with_a_key(model in model_table()) {
        let octets = table_octets(&model);
        let table = TableRef::from_bytes(&octets).unwrap();
        for key in ["", "a", "a\0", "ab", "Z", "x-death", "missing"] {
            let first = folded(&model).into_iter().find(|(found, _)| found == key.as_bytes());
            match (table.get(key), first) {
                (Some(value), Some((_, model))) => assert_value_is(value, &model),
                (None, None) => {}
                (found, expected) => panic!("{key}: {found:?} is not {expected:?}"),
            }
        }
    }

    #[test]
    fn table_that_is_cut_is_an_error(model in model_table()) {
        let table = sized(b'F', &table_octets(&model));
        let whole = &table[1..];
        for cut in 0..whole.len() {
            let error = TableRef::parse(&mut Reader::new(&whole[..cut]));
            prop_assert_eq!(error, Err(TableError::Truncated));
        }
        let mut reader = Reader::new(whole);
        prop_assert!(TableRef::parse(&mut reader).is_ok());
        prop_assert!(reader.is_empty());
    }

    #[test]
    fn table_that_is_cut_inside_gives_no_partial_value(model in model_table()) {
        let octets = table_octets(&model);
        let ends: Vec<usize> =
            (0..=model.len()).map(|fields| table_octets(&model[..fields].to_vec()).len()).collect();
        for cut in 0..octets.len() {
            let read = TableRef::from_bytes(&octets[..cut]);
            prop_assert_eq!(read.is_ok(), ends.contains(&cut), "cut at {}", cut);
        }
    }

    #[test]
    fn written_table_is_its_size_and_its_bytes(model in model_table(), before in any_octets()) {
        let octets = table_octets(&model);
        let mut out = before.clone();
        TableRef::from_bytes(&octets).unwrap().write(&mut out);
        prop_assert_eq!(out, [&before[..], &sized(b'F', &octets)[1..]].concat());
    }
}

#[test]
fn value_types_are_those_of_rabbitmq() {
    for tag in 0..=255u8 {
        let known = TYPES.iter().find(|(known, ..)| *known == tag);
        // Eight zeros are enough for every fixed value, and an empty string, table or array.
        let size = known.map_or(8, |(_, size, _)| *size);
        let octets = field(b"k", &[&[tag][..], &vec![0; size]].concat());
        match (TableRef::from_bytes(&octets), known) {
            (Ok(table), Some((.., name))) => {
                assert_eq!(table.get("k").unwrap().type_name(), *name, "{tag}");
                let cut = &octets[..octets.len() - 1];
                assert_eq!(TableRef::from_bytes(cut), Err(TableError::Truncated), "{tag} cut");
            }
            (Err(error), None) => assert_eq!(error, TableError::UnknownFieldType(tag)),
            (read, known) => panic!("{tag}: {read:?}, known as {known:?}"),
        }
        let in_array = ArrayRef::from_bytes(&octets[2..]);
        assert_eq!(in_array.is_ok(), known.is_some(), "{tag} in an array");
    }
}

#[test]
fn integers_of_every_width_keep_sign_and_value() {
    let values: &[(&[u8], Option<i64>)] = &[
        (b"b\x80", Some(-128)),
        (b"B\x80", Some(128)),
        (b"s\x80\x00", Some(-32_768)),
        (b"u\x80\x00", Some(32_768)),
        (b"I\x80\x00\x00\x00", Some(-2_147_483_648)),
        (b"i\x80\x00\x00\x00", Some(2_147_483_648)),
        (b"l\x80\0\0\0\0\0\0\0", Some(i64::MIN)),
        (b"L\xff\xff\xff\xff\xff\xff\xff\xff", Some(-1)),
        (b"l\x7f\xff\xff\xff\xff\xff\xff\xff", Some(i64::MAX)),
        (b"T\0\0\0\0\0\0\0\x05", None),
        (b"t\x01", None),
        (b"d\x3f\xf0\0\0\0\0\0\0", None),
        (b"S\0\0\0\x015", None),
    ];
    for (octets, integer) in values {
        let array = ArrayRef::from_bytes(octets).unwrap();
        assert_eq!(array.iter().next().unwrap().as_integer(), *integer, "{octets:?}");
    }
}

#[test]
fn as_long_str_accepts_only_a_long_string() {
    let array = [sized(b'S', b"\xff"), sized(b'x', b"\xff")].concat();
    let array = ArrayRef::from_bytes(&array).unwrap();
    let strings: Vec<_> = array.iter().map(|value| value.as_long_str()).collect();
    assert_eq!(strings, [Some(&b"\xff"[..]), None]);
}

#[test]
fn timestamps_and_decimals_hold_their_extremes() {
    let octets = [&b"T\xff\xff\xff\xff\xff\xff\xff\xff"[..], b"D\xff\xff\xff\xff\xff"].concat();
    let values: Vec<_> = ArrayRef::from_bytes(&octets).unwrap().iter().collect();
    let decimal = Value::Decimal { scale: 255, value: u32::MAX };
    assert_eq!(values, [Value::Timestamp(u64::MAX), decimal]);
}

#[test]
fn floats_must_be_finite() {
    for float in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let double = [&b"d"[..], &float.to_be_bytes()].concat();
        #[expect(clippy::cast_possible_truncation, reason = "not finite either way")]
        let single = [&b"f"[..], &(float as f32).to_be_bytes()].concat();
        for value in [double, single] {
            assert_eq!(TableRef::from_bytes(&field(b"k", &value)), Err(TableError::NotFinite));
            let nested = array_octets(&value);
            assert_eq!(TableRef::from_bytes(&field(b"k", &nested)), Err(TableError::NotFinite));
        }
    }
    let zero = [&b"d"[..], &(-0.0f64).to_be_bytes()].concat();
    let table = field(b"k", &zero);
    let Some(Value::F64(zero)) = TableRef::from_bytes(&table).unwrap().get("k") else {
        panic!("a double")
    };
    assert!(zero.is_sign_negative());
}

#[test]
fn table_keys_may_be_empty_or_not_utf8_or_of_255_bytes() {
    for key in [&b""[..], b"\xff", &[b'k'; 255]] {
        let octets = field(key, b"V");
        let table = TableRef::from_bytes(&octets).unwrap();
        assert_eq!(table.iter().next(), Some((key, Value::Void)));
    }
}

#[test]
fn table_nesting_is_allowed_up_to_the_limit() {
    assert!(TableRef::from_bytes(&nested_tables(TABLE_DEPTH_MAX)).is_ok());
    let too_deep = nested_tables(TABLE_DEPTH_MAX + 1);
    assert_eq!(TableRef::from_bytes(&too_deep), Err(TableError::TooDeep));

    let arrays = |depth: usize| (1..depth).fold(Vec::new(), |octets, _| array_octets(&octets));
    assert!(ArrayRef::from_bytes(&arrays(TABLE_DEPTH_MAX)).is_ok());
    assert_eq!(ArrayRef::from_bytes(&arrays(TABLE_DEPTH_MAX + 1)), Err(TableError::TooDeep));
    let in_table = |depth| field(b"k", &array_octets(&arrays(depth)));
    assert!(TableRef::from_bytes(&in_table(TABLE_DEPTH_MAX - 1)).is_ok());
    assert_eq!(TableRef::from_bytes(&in_table(TABLE_DEPTH_MAX)), Err(TableError::TooDeep));
}

/// As many levels as fit into the largest frame, on a stack that a recursion into each would burst;
/// the widest allowed nesting is walked in every way that the crate knows on the same stack.
#[test]
fn deepest_table_of_a_frame_is_refused_on_a_small_stack() {
    let deepest = nested_tables(21_000);
    let widest = nested_tables(TABLE_DEPTH_MAX);
    let walk = move || {
        assert_eq!(TableRef::from_bytes(&deepest), Err(TableError::TooDeep));
        let table = TableRef::from_bytes(&widest).unwrap();
        assert!(!table.needs_normalising());
        assert_eq!(table.normalised().as_ref(), table);
    };
    let thread = std::thread::Builder::new().stack_size(64 * 1024).spawn(walk);
    thread.unwrap().join().expect("neither a burst stack nor a failed assertion");
}

#[test]
fn array_as_large_as_a_frame_is_kept_encoded() {
    let octets = vec![b'V'; 131_000];
    let array = ArrayRef::from_bytes(&octets).unwrap();
    assert_eq!(array.len(), 131_000);
    assert!(std::ptr::eq(array.as_bytes(), octets.as_slice()));
}

#[test]
fn table_sizes_that_are_wrong_are_errors() {
    let cases: &[&[u8]] = &[
        b"\0\0\0\x05\x01kV",
        b"\xff\xff\xff\xff\x01kV",
        b"\0\0\0\x09\x01kS\0\0\0\x09ab",
        b"\0\0\0\x0a\x01kF\0\0\0\x09\x01kV",
        b"\0\0\0\x08\x01kA\0\0\0\x09V",
        b"\0\0\0\x06\x01kA\0\0\0",
        b"\0\0\0\x02\x01k",
        b"\0\0\0\x02\x05k",
        b"\0\0\0\x04\x01kI\0",
        b"\0\0\0\x09\x01kA\0\0\0\x02I\0",
        b"\0\0\0\x09\x01kF\0\0\0\x02\x05k",
        b"\0\0\0\x07\x01kS\xff\xff\xff\xff",
    ];
    for octets in cases {
        let parsed = TableRef::parse(&mut Reader::new(octets));
        assert_eq!(parsed, Err(TableError::Truncated), "{octets:?}");
    }
}

#[test]
fn nested_tables_are_built_in_place_or_beforehand() {
    let mut in_place = TableBuilder::new();
    in_place.insert("n", Value::I64(-1)).table("t", |table| {
        table.insert("a", Value::Bool(true));
    });
    in_place.array("l", |list| {
        list.push(Value::LongStr(b"x")).table(|_| {}).array(|inner| {
            inner.push(Value::Void);
        });
    });
    let in_place = in_place.finish();

    let nested = TableBuilder::new().insert("a", Value::Bool(true)).finish();
    let inner = ArrayBuilder::new().push(Value::Void).finish();
    let list = ArrayBuilder::new()
        .push(Value::LongStr(b"x"))
        .push(Value::Table(TableRef::EMPTY))
        .push(Value::Array(inner.as_ref()))
        .finish();
    let beforehand = TableBuilder::new()
        .insert("n", Value::I64(-1))
        .insert("t", Value::Table(nested.as_ref()))
        .insert("l", Value::Array(list.as_ref()))
        .finish();
    assert_eq!(in_place, beforehand);
    assert_eq!(in_place.get("n"), Some(Value::I64(-1)));
    let text = "{n=I64(-1), t=Table({a=Bool(true)}), \
                l=Array([LongStr(\"x\"), Table({}), Array([Void])])}";
    assert_eq!(format!("{in_place:?}"), text);
    assert!(TableRef::from_bytes(in_place.as_ref().as_bytes()).is_ok());
}

#[test]
fn empty_table_is_the_default() {
    assert_eq!(Table::default().as_ref(), TableRef::EMPTY);
    assert!(Table::default().is_empty() && TableRef::EMPTY.is_empty());
    assert_eq!(TableRef::EMPTY.get(""), None);
}

#[test]
#[should_panic = "a table key of 256 bytes"]
fn table_key_that_is_too_long_panics() {
    TableBuilder::new().insert([b'k'; 256], Value::Void);
}
