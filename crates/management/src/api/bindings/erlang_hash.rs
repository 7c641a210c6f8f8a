//! Erlang's `phash2` of a field table, as RabbitMQ represents tables.
//!
//! RabbitMQ's tools address a binding by its routing key and this hash of its arguments. A table is a list
//! of `{Key, Type, Value}`, an array a list of `{Type, Value}`; types are atoms. The hash mixes three words
//! at a time after Bob Jenkins. Expected values in the tests were computed by RabbitMQ.

use amqp::table::{TableRef, Value};

/// The golden ratio, of which each kind of term uses a multiple.
const RATIO: u32 = 0x9e37_79b9;

/// The hash of the empty list where nothing was hashed before it.
const EMPTY_LIST: u32 = 3_468_870_702;

/// Bytes mixed at a time.
const BLOCK_BYTES: usize = 12;

/// The multiples of [`RATIO`] for the kinds of terms.
mod kind {
    pub(crate) const INTEGER: u32 = 1;
    pub(crate) const NIL: u32 = 2;
    pub(crate) const ATOM: u32 = 3;
    pub(crate) const TUPLE: u32 = 9;
    pub(crate) const NEGATIVE: u32 = 10;
    pub(crate) const POSITIVE: u32 = 11;
    pub(crate) const FLOAT: u32 = 12;
    pub(crate) const BINARY: u32 = 13;
}

/// `erlang:phash2(Table, 1 bsl 32)`.
pub(crate) fn hash(table: TableRef<'_>) -> u32 {
    let mut hash = Hash(0);
    hash.table(table);
    hash.0
}

/// The hash of the terms so far.
struct Hash(u32);

impl Hash {
    fn table(&mut self, table: TableRef<'_>) {
        for (key, value) in table {
            self.tuple(3);
            self.binary(key);
            self.typed(value);
        }
        self.nil();
    }

    fn typed(&mut self, value: Value<'_>) {
        self.atom(value.type_name());
        match value {
            Value::Bool(value) => self.atom(if value { "true" } else { "false" }),
            Value::F32(value) => self.float(value.into()),
            Value::F64(value) => self.float(value),
            Value::Decimal { scale, value } => {
                self.tuple(2);
                self.integer(scale.into());
                self.integer(value.into());
            }
            Value::LongStr(bytes) | Value::Binary(bytes) => self.binary(bytes),
            Value::Timestamp(seconds) => self.integer(seconds.into()),
            Value::Table(table) => self.table(table),
            Value::Array(items) => {
                for item in items.iter() {
                    self.tuple(2);
                    self.typed(item);
                }
                self.nil();
            }
            Value::Void => self.atom("undefined"),
            Value::I8(_)
            | Value::U8(_)
            | Value::I16(_)
            | Value::U16(_)
            | Value::I32(_)
            | Value::U32(_)
            | Value::I64(_) => self.integer(value.as_integer().unwrap_or_default().into()),
        }
    }

    fn tuple(&mut self, arity: u32) {
        self.step(arity, 0, kind::TUPLE);
    }

    fn nil(&mut self) {
        match self.0 {
            0 => self.0 = EMPTY_LIST,
            _ => self.step(2, 0, kind::NIL),
        }
    }

    fn atom(&mut self, name: &str) {
        let value = name.bytes().fold(0_u32, |hash, byte| {
            let hash = (hash << 4).wrapping_add(byte.into());
            let high = hash & 0xf000_0000;
            hash ^ (high >> 24) ^ high
        });
        match self.0 {
            0 => self.0 = value,
            _ => self.step(value, 0, kind::ATOM),
        }
    }

    /// Integers of 28 bits are hashed as one word, larger ones as two and a sign.
    fn integer(&mut self, value: i128) {
        if (-(1 << 27)..1 << 27).contains(&value) {
            if value < 0 {
                self.step(low(value.unsigned_abs()), 0, kind::INTEGER);
            }
            self.step(low(value.cast_unsigned()), 0, kind::INTEGER);
            return;
        }
        let kind = if value < 0 { kind::NEGATIVE } else { kind::POSITIVE };
        let value = value.unsigned_abs();
        self.step(low(value), low(value >> 32), kind);
    }

    fn float(&mut self, value: f64) {
        // Both zeros have the same hash.
        let bits = u128::from((value + 0.0).to_bits());
        self.step(low(bits >> 32), low(bits), kind::FLOAT);
    }

    fn binary(&mut self, bytes: &[u8]) {
        let start = kind::BINARY.wrapping_mul(RATIO).wrapping_add(self.0);
        if bytes.is_empty() {
            self.0 = start;
            return;
        }
        let mut state = [RATIO, RATIO, start];
        let (blocks, rest) = bytes.as_chunks::<BLOCK_BYTES>();
        for block in blocks {
            add(&mut state, block);
            mix(&mut state);
        }
        // The length counts as the first byte of the third word.
        let mut last = [0; BLOCK_BYTES];
        let (words, third) = last.split_at_mut(8);
        let (of_words, of_third) = rest.split_at(rest.len().min(8));
        words.iter_mut().zip(of_words).for_each(|(to, from)| *to = *from);
        third.iter_mut().skip(1).zip(of_third).for_each(|(to, from)| *to = *from);
        let [_, _, c] = &mut state;
        *c = c.wrapping_add(low(bytes.len() as u128));
        add(&mut state, &last);
        mix(&mut state);
        let [_, _, c] = state;
        self.0 = c;
    }

    fn step(&mut self, x: u32, y: u32, kind: u32) {
        let constant = kind.wrapping_mul(RATIO);
        let mut state = [constant.wrapping_add(x), constant.wrapping_add(y), self.0];
        mix(&mut state);
        let [_, _, c] = state;
        self.0 = c;
    }
}

/// The low word of a number.
fn low(value: u128) -> u32 {
    (value & u128::from(u32::MAX)) as u32
}

fn add(state: &mut [u32; 3], block: &[u8; BLOCK_BYTES]) {
    let (words, _) = block.as_chunks::<4>();
    for (word, bytes) in state.iter_mut().zip(words) {
        *word = word.wrapping_add(u32::from_le_bytes(*bytes));
    }
}

fn mix([a, b, c]: &mut [u32; 3]) {
    for (first, second, third) in [(13, 8, 13), (12, 16, 5), (3, 10, 15)] {
        *a = a.wrapping_sub(*b).wrapping_sub(*c) ^ (*c >> first);
        *b = b.wrapping_sub(*c).wrapping_sub(*a) ^ (*a << second);
        *c = c.wrapping_sub(*a).wrapping_sub(*b) ^ (*b >> third);
    }
}

#[cfg(test)]
mod tests {
    use amqp::table::TableBuilder;

    use super::*;

    fn of(fields: &[(&str, Value<'_>)]) -> u32 {
        let mut table = TableBuilder::new();
        for (key, value) in fields {
            table.insert(key, *value);
        }
        hash(table.finish().as_ref())
    }

    #[test]
    fn erlang_hash_of_plain_values_matches() {
        let n = |value| of(&[("n", value)]);
        for (expected, actual) in [
            (3_468_870_702, of(&[])),
            (3_739_797_118, of(&[("x-match", Value::LongStr(b"all"))])),
            (3_696_638_621, of(&[("", Value::LongStr(b""))])),
            (783_891_907, n(Value::I64(0))),
            (4_152_883_683, n(Value::I64(-5))),
            (4_194_917_435, n(Value::I32(134_217_727))),
            (2_253_443_090, n(Value::I32(134_217_728))),
            (2_561_540_901, n(Value::I32(-134_217_728))),
            (1_567_024_038, n(Value::I32(-134_217_729))),
            (3_717_531_228, n(Value::I64(576_460_752_303_423_487))),
            (3_237_671_429, n(Value::I64(576_460_752_303_423_488))),
            (2_566_239_232, n(Value::I64(i64::MAX))),
            (330_617_432, n(Value::I64(i64::MIN))),
            (2_120_593_429, n(Value::Timestamp(u64::MAX))),
            (2_086_471_376, of(&[("f", Value::F64(1.5))])),
            (3_371_093_886, of(&[("f", Value::F32(-0.25))])),
            (3_274_250_980, of(&[("f", Value::F64(-0.0))])),
            (2_633_841_460, of(&[("b", Value::Bool(true)), ("c", Value::Bool(false))])),
            (3_233_508_068, of(&[("v", Value::Void)])),
            (1_625_245_386, of(&[("d", Value::Decimal { scale: 2, value: 314 })])),
        ] {
            assert_eq!(expected, actual);
        }
        let several = [
            ("a", Value::I8(-1)),
            ("b", Value::U8(255)),
            ("c", Value::I16(-2)),
            ("d", Value::U16(3)),
            ("e", Value::LongStr(b"twelve bytes")),
        ];
        assert_eq!(of(&several), 1_378_972_725);
    }

    #[test]
    fn erlang_hash_of_nested_values_matches() {
        let nested = |fill: fn(&mut TableBuilder)| {
            let mut table = TableBuilder::new();
            fill(&mut table);
            hash(table.finish().as_ref())
        };
        let empty_array = |table: &mut TableBuilder| {
            table.array("a", |_| {});
        };
        assert_eq!(nested(empty_array), 2_387_373_417);
        let array = |table: &mut TableBuilder| {
            table.array("a", |items| {
                items.push(Value::I64(1));
                items.push(Value::LongStr(b"a longer string of more than twelve"));
                items.array(|items| {
                    items.push(Value::Bool(true));
                });
            });
        };
        assert_eq!(nested(array), 100_868_090);
        let empty_table = |table: &mut TableBuilder| {
            table.table("t", |_| {});
        };
        assert_eq!(nested(empty_table), 2_638_679_353);
        let table = |table: &mut TableBuilder| {
            table.table("t", |fields| {
                fields.insert("k", Value::Binary(b"\xff\0\x01"));
                fields.insert("l", Value::U32(7));
            });
        };
        assert_eq!(nested(table), 1_201_419_717);
    }
}
