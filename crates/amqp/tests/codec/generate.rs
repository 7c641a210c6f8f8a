//! Inputs for the property tests: tables, properties and one method of every kind.

use amqp::method::*;
use amqp::properties::Properties;
use amqp::table::{Table, TableRef};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::primitives_model::{ModelTable, ModelValue, delivered, table_octets};

/// Any table: any keys, duplicates, every type, nested up to four levels.
pub(crate) fn model_table() -> impl Strategy<Value = ModelTable> {
    vec((key(), model_value(any_octets().boxed())), 0..8)
}

/// A table that other libraries can hold too: UTF-8 keys, each once, sorted; values in the form in
/// which RabbitMQ writes them.
pub(crate) fn portable_table() -> impl Strategy<Value = Table> {
    let key = short_text().prop_map(String::into_bytes);
    vec((key, model_value(short_text().prop_map(String::into_bytes).boxed())), 0..6)
        .prop_map(|table| owned(&table_octets(&sorted_at_every_level(&table))))
}

fn sorted_at_every_level(table: &ModelTable) -> ModelTable {
    fn value(value: ModelValue) -> ModelValue {
        match value {
            ModelValue::Table(table) => ModelValue::Table(sorted_at_every_level(&table)),
            ModelValue::Array(values) => {
                ModelValue::Array(values.into_iter().map(value_).collect())
            }
            ModelValue::Fixed(..) | ModelValue::Sized(..) => value,
        }
    }
    use value as value_;
    delivered(table).into_iter().map(|(key, found)| (key, value(found))).collect()
}

fn model_value(keys: BoxedStrategy<Vec<u8>>) -> impl Strategy<Value = ModelValue> {
    let fixed = |tag: u8, size: usize| {
        vec(any::<u8>(), size).prop_map(move |octets| ModelValue::Fixed(tag, octets))
    };
    let floats = prop_oneof![
        any::<f32>()
            .prop_filter("finite", |value| value.is_finite())
            .prop_map(|value| { ModelValue::Fixed(b'f', value.to_be_bytes().to_vec()) }),
        any::<f64>()
            .prop_filter("finite", |value| value.is_finite())
            .prop_map(|value| { ModelValue::Fixed(b'd', value.to_be_bytes().to_vec()) }),
    ];
    let leaf = prop_oneof![
        fixed(b't', 1),
        fixed(b'b', 1),
        fixed(b'B', 1),
        fixed(b's', 2),
        fixed(b'u', 2),
        fixed(b'I', 4),
        fixed(b'i', 4),
        fixed(b'l', 8),
        fixed(b'L', 8),
        floats,
        fixed(b'D', 5),
        fixed(b'T', 8),
        fixed(b'V', 0),
        any_octets().prop_map(|octets| ModelValue::Sized(b'S', octets)),
        any_octets().prop_map(|octets| ModelValue::Sized(b'x', octets)),
    ];
    leaf.prop_recursive(3, 16, 4, move |inner| {
        prop_oneof![
            vec((keys.clone(), inner.clone()), 0..4).prop_map(ModelValue::Table),
            vec(inner, 0..4).prop_map(ModelValue::Array),
        ]
    })
}

/// Keys that often collide, and keys of any bytes.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => prop::sample::select(vec![&b""[..], b"a", b"a\0", b"ab", b"Z", b"x-death", b"\xff"])
            .prop_map(<[u8]>::to_vec),
        1 => vec(any::<u8>(), 0..=255),
    ]
}

pub(crate) fn any_octets() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..40)
}

fn short_octets() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![8 => vec(any::<u8>(), 0..20), 1 => vec(any::<u8>(), 255)]
}

pub(crate) fn short_text() -> impl Strategy<Value = String> {
    prop_oneof![8 => "\\PC{0,20}", 1 => "[a-z]{255}"]
}

/// A validated copy of the bytes of a table without its size.
pub(crate) fn owned(octets: &[u8]) -> Table {
    TableRef::from_bytes(octets).expect("generated tables are well-formed").to_table()
}

type Numbers = (u8, u8, u16, u16, u32, u32, u64);

/// The values from which [`Arguments::properties`] and [`Arguments::methods`] take theirs.
#[derive(Debug, Clone)]
pub(crate) struct Arguments {
    texts: [String; 3],
    octets: [Vec<u8>; 2],
    long: [Vec<u8>; 2],
    table: Table,
    numbers: Numbers,
    bits: [bool; 5],
    present: u16,
}

impl Arguments {
    /// Any values that AMQP admits.
    pub(crate) fn any() -> impl Strategy<Value = Self> {
        let table = model_table().prop_map(|table| owned(&table_octets(&table)));
        Self::of(table.boxed(), short_octets().boxed())
    }

    /// Values that other libraries can hold too: every short string is UTF-8, tables are sorted.
    pub(crate) fn portable() -> impl Strategy<Value = Self> {
        Self::of(portable_table().boxed(), short_text().prop_map(String::into_bytes).boxed())
    }

    fn of(
        table: BoxedStrategy<Table>,
        octets: BoxedStrategy<Vec<u8>>,
    ) -> impl Strategy<Value = Self> {
        let texts = [short_text(), short_text(), short_text()];
        let long = [any_octets(), any_octets()];
        (
            texts,
            [octets.clone(), octets],
            long,
            table,
            any::<Numbers>(),
            any::<[bool; 5]>(),
            any::<u16>(),
        )
            .prop_map(|(texts, octets, long, table, numbers, bits, present)| Self {
                texts,
                octets,
                long,
                table,
                numbers,
                bits,
                present,
            })
    }

    /// The same values in every run.
    pub(crate) fn sample() -> Self {
        let mut runner = TestRunner::deterministic();
        Self::any().new_tree(&mut runner).expect("no value is rejected").current()
    }

    pub(crate) fn table(&self) -> TableRef<'_> {
        self.table.as_ref()
    }

    /// Properties of which any may be absent.
    pub(crate) fn properties(&self) -> Properties<'_> {
        let present = |place: u16| self.present >> place & 1 == 1;
        let (o1, o2) = (self.octets[0].as_slice(), self.octets[1].as_slice());
        let text = |place: usize| self.texts[place].as_bytes();
        Properties {
            content_type: present(0).then_some(text(0)),
            content_encoding: present(1).then_some(text(1)),
            headers: present(2).then_some(self.table()),
            delivery_mode: present(3).then_some(self.numbers.0),
            priority: present(4).then_some(self.numbers.1),
            correlation_id: present(5).then_some(o1),
            reply_to: present(6).then_some(o2),
            expiration: present(7).then_some(text(2)),
            message_id: present(8).then_some(text(0)),
            timestamp: present(9).then_some(self.numbers.6),
            type_: present(10).then_some(o2),
            user_id: present(11).then_some(text(1)),
            app_id: present(12).then_some(o1),
            cluster_id: present(13).then_some(text(2)),
        }
    }

    /// One method of every kind, in the order of [`METHODS`].
    pub(crate) fn methods(&self) -> Vec<Method<'_>> {
        let mut methods = self.connection_methods();
        methods.extend(self.channel_and_exchange_methods());
        methods.extend(self.queue_methods());
        methods.extend(self.basic_methods());
        methods.extend::<[Method<'_>; 8]>([
            ConfirmSelect { nowait: self.bits[0] }.into(),
            ConfirmSelectOk.into(),
            TxSelect.into(),
            TxSelectOk.into(),
            TxCommit.into(),
            TxCommitOk.into(),
            TxRollback.into(),
            TxRollbackOk.into(),
        ]);
        methods
    }

    fn connection_methods(&self) -> Vec<Method<'_>> {
        let [t1, t2, _] = self.texts.each_ref().map(String::as_str);
        let [l1, l2] = self.long.each_ref().map(Vec::as_slice);
        let (octet1, octet2, short1, short2, long1, ..) = self.numbers;
        vec![
            ConnectionStart {
                version_major: octet1,
                version_minor: octet2,
                server_properties: self.table(),
                mechanisms: l1,
                locales: l2,
            }
            .into(),
            ConnectionStartOk {
                client_properties: self.table(),
                mechanism: t1,
                response: l1,
                locale: t2,
            }
            .into(),
            ConnectionSecure { challenge: l1 }.into(),
            ConnectionSecureOk { response: l2 }.into(),
            ConnectionTune { channel_max: short1, frame_max: long1, heartbeat: short2 }.into(),
            ConnectionTuneOk { channel_max: short1, frame_max: long1, heartbeat: short2 }.into(),
            ConnectionOpen { virtual_host: t1 }.into(),
            ConnectionOpenOk.into(),
            ConnectionClose {
                reply_code: short1,
                reply_text: t1,
                class_id: short2,
                method_id: short1,
            }
            .into(),
            ConnectionCloseOk.into(),
            ConnectionBlocked { reason: t1 }.into(),
            ConnectionUnblocked.into(),
            ConnectionUpdateSecret { new_secret: l1, reason: t2 }.into(),
            ConnectionUpdateSecretOk.into(),
        ]
    }

    fn channel_and_exchange_methods(&self) -> Vec<Method<'_>> {
        let [t1, t2, t3] = self.texts.each_ref().map(String::as_str);
        let [b1, b2, b3, b4, b5] = self.bits;
        let (_, _, short1, short2, ..) = self.numbers;
        let (nowait, arguments) = (b5, self.table());
        vec![
            ChannelOpen.into(),
            ChannelOpenOk.into(),
            ChannelFlow { active: b1 }.into(),
            ChannelFlowOk { active: b2 }.into(),
            ChannelClose {
                reply_code: short1,
                reply_text: t1,
                class_id: short2,
                method_id: short1,
            }
            .into(),
            ChannelCloseOk.into(),
            AccessRequest {
                realm: t1,
                exclusive: b1,
                passive: b2,
                active: b3,
                write: b4,
                read: b5,
            }
            .into(),
            AccessRequestOk { ticket: short1 }.into(),
            ExchangeDeclare {
                exchange: t1,
                exchange_type: t2,
                passive: b1,
                durable: b2,
                auto_delete: b3,
                internal: b4,
                nowait,
                arguments,
            }
            .into(),
            ExchangeDeclareOk.into(),
            ExchangeDelete { exchange: t1, if_unused: b1, nowait }.into(),
            ExchangeDeleteOk.into(),
            ExchangeBind { destination: t1, source: t2, routing_key: t3, nowait, arguments }.into(),
            ExchangeBindOk.into(),
            ExchangeUnbind { destination: t1, source: t2, routing_key: t3, nowait, arguments }
                .into(),
            ExchangeUnbindOk.into(),
        ]
    }

    fn queue_methods(&self) -> Vec<Method<'_>> {
        let [queue, exchange, routing_key] = self.texts.each_ref().map(String::as_str);
        let [b1, b2, b3, b4, nowait] = self.bits;
        let (.., message_count, consumer_count, _) = self.numbers;
        let arguments = self.table();
        vec![
            QueueDeclare {
                queue,
                passive: b1,
                durable: b2,
                exclusive: b3,
                auto_delete: b4,
                nowait,
                arguments,
            }
            .into(),
            QueueDeclareOk { queue, message_count, consumer_count }.into(),
            QueueBind { queue, exchange, routing_key, nowait, arguments }.into(),
            QueueBindOk.into(),
            QueuePurge { queue, nowait }.into(),
            QueuePurgeOk { message_count }.into(),
            QueueDelete { queue, if_unused: b1, if_empty: b2, nowait }.into(),
            QueueDeleteOk { message_count }.into(),
            QueueUnbind { queue, exchange, routing_key, arguments }.into(),
            QueueUnbindOk.into(),
        ]
    }

    fn basic_methods(&self) -> Vec<Method<'_>> {
        let [queue, consumer_tag, _] = self.texts.each_ref().map(String::as_str);
        let [b1, b2, b3, b4, b5] = self.bits;
        let (_, _, prefetch_count, _, prefetch_size, _, delivery_tag) = self.numbers;
        let [publish, return_, deliver, get_ok] = self.content_methods();
        vec![
            BasicQos { prefetch_size, prefetch_count, global: b1 }.into(),
            BasicQosOk.into(),
            BasicConsume {
                queue,
                consumer_tag,
                no_local: b1,
                no_ack: b2,
                exclusive: b3,
                nowait: b4,
                arguments: self.table(),
            }
            .into(),
            BasicConsumeOk { consumer_tag }.into(),
            BasicCancel { consumer_tag, nowait: b1 }.into(),
            BasicCancelOk { consumer_tag }.into(),
            publish,
            return_,
            deliver,
            BasicGet { queue, no_ack: b5 }.into(),
            get_ok,
            BasicGetEmpty.into(),
            BasicAck { delivery_tag, multiple: b1 }.into(),
            BasicReject { delivery_tag, requeue: b2 }.into(),
            BasicRecoverAsync { requeue: b1 }.into(),
            BasicRecover { requeue: b2 }.into(),
            BasicRecoverOk.into(),
            BasicNack { delivery_tag, multiple: b3, requeue: b4 }.into(),
        ]
    }

    fn content_methods(&self) -> [Method<'_>; 4] {
        let [_, consumer_tag, reply_text] = self.texts.each_ref().map(String::as_str);
        let [exchange, routing_key] = self.octets.each_ref().map(Vec::as_slice);
        let [mandatory, immediate, redelivered, ..] = self.bits;
        let (.., reply_code, _, message_count, delivery_tag) = self.numbers;
        [
            BasicPublish { exchange, routing_key, mandatory, immediate }.into(),
            BasicReturn { reply_code, reply_text, exchange, routing_key }.into(),
            BasicDeliver { consumer_tag, delivery_tag, redelivered, exchange, routing_key }.into(),
            BasicGetOk { delivery_tag, redelivered, exchange, routing_key, message_count }.into(),
        ]
    }
}
