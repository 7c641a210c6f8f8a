//! The commands that the words of a line make.

use amqp::method::MethodId;
use amqp::properties::Properties;
use amqp::reply_code::ReplyCode;
use amqp::table::Table;
use broker::refusal::Refusal;
use broker::{
    Bind, ChannelNumber, Command, Consume, Content, DeclareExchange, DeclareQueue, DeleteQueue,
    DeliveryTag, Outcome, PolicyValue, Publish, Request,
};

use super::words::Words;

/// A value of a policy: a number, or a string; `true` is neither.
pub(crate) fn policy_value(text: &str) -> PolicyValue {
    match (text.parse(), text.parse()) {
        _ if text == "true" => PolicyValue::Other(text.to_owned()),
        (Ok(number), _) => PolicyValue::Integer(number),
        (_, Ok(number)) => PolicyValue::Float(number),
        _ => PolicyValue::Text(text.replace('"', "")),
    }
}

/// A command that owns what it borrows.
pub(crate) struct Owned {
    words: Vec<String>,
    table: Table,
    properties: Vec<u8>,
    body: Vec<u8>,
    make: fn(&Self) -> Command<'_>,
    flags: Vec<bool>,
    number: u64,
}

impl Owned {
    fn new(make: fn(&Self) -> Command<'_>) -> Self {
        Self {
            words: Vec::new(),
            table: Table::default(),
            properties: Vec::new(),
            body: Vec::new(),
            make,
            flags: Vec::new(),
            number: 0,
        }
    }

    pub(crate) fn simple(command: Command<'static>) -> Self {
        let make = match command {
            Command::OpenChannel => |_: &Self| Command::OpenChannel,
            Command::CloseChannel => |_: &Self| Command::CloseChannel,
            Command::Flow => |_: &Self| Command::Flow,
            Command::AccessRequest => |_: &Self| Command::AccessRequest,
            Command::ChannelCloseOk => |_: &Self| Command::ChannelCloseOk,
            Command::TxSelect => |_: &Self| Command::TxSelect,
            Command::TxCommit => |_: &Self| Command::TxCommit,
            Command::TxRollback => |_: &Self| Command::TxRollback,
            other => panic!("{other:?} is not simple"),
        };
        Self::new(make)
    }

    pub(crate) fn request(&self, channel: u16) -> Request<'_> {
        Request {
            channel: ChannelNumber(channel),
            method: MethodId::NONE,
            command: (self.make)(self),
        }
    }

    fn word(&self, at: usize) -> &str {
        &self.words[at]
    }

    fn bind(&self) -> Bind<'_> {
        Bind {
            destination: self.word(0),
            source: self.word(1),
            routing_key: self.word(2),
            nowait: self.flags[0],
            arguments: self.table.as_ref(),
        }
    }

    fn outcome(&self) -> Outcome {
        let (requeue, is_reject, is_ack) = (self.flags[1], self.flags[2], self.flags[3]);
        match (is_ack, requeue) {
            (true, _) => Outcome::Ack,
            (false, true) => Outcome::Requeue { failed: is_reject },
            (false, false) => Outcome::Reject,
        }
    }
}

/// The command of a line.
pub(crate) fn command(verb: &str, words: &mut Words) -> Owned {
    match verb {
        "open" => Owned::simple(Command::OpenChannel),
        "close-channel" => Owned::simple(Command::CloseChannel),
        "flow" => Owned::simple(Command::Flow),
        "access-request" => Owned::simple(Command::AccessRequest),
        "refused" => refused(words),
        "close-ok" => Owned::simple(Command::ChannelCloseOk),
        "tx-select" => Owned::simple(Command::TxSelect),
        "commit" => Owned::simple(Command::TxCommit),
        "rollback" => Owned::simple(Command::TxRollback),
        "publish" => publish(words),
        "ack" | "nack" | "reject" => settle(verb, words),
        "declare" | "exchange" | "delete" | "delete-exchange" | "purge" => topology(verb, words),
        "bind" | "unbind" | "bind-exchange" | "unbind-exchange" => bind(verb, words),
        _ => consumer(verb, words),
    }
}

fn topology(verb: &str, words: &mut Words) -> Owned {
    let mut owned = Owned::new(match verb {
        "declare" => |o| {
            Command::DeclareQueue(DeclareQueue {
                queue: o.word(0),
                passive: o.flags[0],
                durable: o.flags[1],
                exclusive: o.flags[2],
                auto_delete: o.flags[3],
                nowait: o.flags[4],
                arguments: o.table.as_ref(),
            })
        },
        "exchange" => |o| {
            Command::DeclareExchange(DeclareExchange {
                exchange: o.word(0),
                kind: o.words.get(1).map_or("", String::as_str),
                passive: o.flags[0],
                durable: o.flags[1],
                auto_delete: o.flags[3],
                internal: o.flags[5],
                nowait: o.flags[4],
                arguments: o.table.as_ref(),
            })
        },
        "delete" => |o| {
            Command::DeleteQueue(DeleteQueue {
                queue: o.word(0),
                if_unused: o.flags[6],
                if_empty: o.flags[7],
                nowait: o.flags[4],
            })
        },
        "delete-exchange" => |o| Command::DeleteExchange {
            exchange: o.word(0),
            if_unused: o.flags[6],
            nowait: o.flags[4],
        },
        _ => |o| Command::PurgeQueue { queue: o.word(0), nowait: o.flags[4] },
    });
    let flags = [
        "passive",
        "durable",
        "exclusive",
        "auto-delete",
        "nowait",
        "internal",
        "if-unused",
        "if-empty",
    ];
    owned.flags = flags.iter().map(|flag| words.flag(flag)).collect();
    owned.table = words.table();
    while let Some(word) = words.try_next() {
        owned.words.push(word);
    }
    owned
}

fn bind(verb: &str, words: &mut Words) -> Owned {
    let mut owned = Owned::new(match verb {
        "bind" => |o| Command::BindQueue(o.bind()),
        "unbind" => |o| Command::UnbindQueue(o.bind()),
        "bind-exchange" => |o| Command::BindExchange(o.bind()),
        _ => |o| Command::UnbindExchange(o.bind()),
    });
    owned.flags = vec![words.flag("nowait")];
    owned.table = words.table();
    owned.words = vec![words.next(), words.next(), words.try_next().unwrap_or_default()];
    owned
}

fn publish(words: &mut Words) -> Owned {
    let mut owned = Owned::new(|o| {
        Command::Publish(Publish {
            exchange: o.word(0).as_bytes().into(),
            routing_key: o.word(1).as_bytes().into(),
            mandatory: o.flags[0],
            content: Content::Assembled {
                properties: o.properties.clone().into(),
                body: o.body.clone().into(),
            },
        })
    });
    owned.flags = vec![words.flag("mandatory")];
    let persistent = words.flag("persistent");
    let mode = words.named("mode").map(|mode| mode.parse().unwrap());
    let priority = words.named("priority").map(|p| p.parse().unwrap());
    let timestamp = words.named("timestamp").map(|seconds| seconds.parse().unwrap());
    let [
        expiration,
        reply_to,
        correlation_id,
        user_id,
        message_id,
        content_type,
        content_encoding,
        type_,
        app_id,
    ] = [
        "expiration",
        "reply-to",
        "correlation-id",
        "user-id",
        "message-id",
        "content-type",
        "content-encoding",
        "type",
        "app-id",
    ]
    .map(|name| words.named(name));
    let empty_headers = words.flag("{}");
    let headers = words.table();
    let bytes = |text: &'_ Option<String>| text.clone().map(|text| text.leak().as_bytes());
    let properties = Properties {
        headers: (empty_headers || !headers.is_empty()).then(|| headers.as_ref()),
        delivery_mode: persistent.then_some(2).or(mode),
        priority,
        timestamp,
        expiration: bytes(&expiration),
        reply_to: bytes(&reply_to),
        correlation_id: bytes(&correlation_id),
        user_id: bytes(&user_id),
        message_id: bytes(&message_id),
        content_type: bytes(&content_type),
        content_encoding: bytes(&content_encoding),
        type_: bytes(&type_),
        app_id: bytes(&app_id),
        cluster_id: None,
    };
    properties.encode(&mut owned.properties);
    owned.words = vec![words.next(), words.next()];
    let body = words.next();
    owned.body = match body.strip_suffix("xB").and_then(|n| n.parse().ok()) {
        Some(size) => vec![b'x'; size],
        None => body.into_bytes(),
    };
    owned
}

/// An input that a session refuses before it becomes a command: `refused CODE TEXT`.
fn refused(words: &mut Words) -> Owned {
    let mut owned = Owned::new(|o| {
        let code = ReplyCode::ALL.into_iter().find(|code| u64::from(code.code()) == o.number);
        Command::Refused(Refusal::new(code.unwrap(), o.word(0)))
    });
    owned.number = words.next().parse().unwrap();
    owned.words = vec![words.next()];
    owned
}

fn settle(verb: &str, words: &mut Words) -> Owned {
    let mut owned = Owned::new(|o| Command::Settle {
        tag: DeliveryTag(o.number),
        multiple: o.flags[0],
        outcome: o.outcome(),
    });
    owned.flags =
        vec![words.flag("multiple"), words.flag("requeue"), verb == "reject", verb == "ack"];
    owned.number = words.next().parse().unwrap();
    owned
}

fn consumer(verb: &str, words: &mut Words) -> Owned {
    let mut owned = Owned::new(match verb {
        "qos" => |o| Command::Qos {
            prefetch_count: u16::try_from(o.number).unwrap(),
            global: o.flags[3],
        },
        "consume" => |o| {
            Command::Consume(Consume {
                queue: o.word(0),
                consumer_tag: o.words.get(1).map_or("", String::as_str),
                no_ack: o.flags[0],
                exclusive: o.flags[1],
                nowait: o.flags[2],
                arguments: o.table.as_ref(),
            })
        },
        "cancel" => |o| Command::Cancel { consumer_tag: o.word(0), nowait: o.flags[2] },
        "get" => |o| Command::Get { queue: o.word(0), no_ack: o.flags[0] },
        "recover" => |o| Command::Recover { answer: !o.flags[2] },
        "confirm-select" => |o| Command::ConfirmSelect { nowait: o.flags[2] },
        other => panic!("what is `{other}`?"),
    });
    let flags = ["no-ack", "exclusive", "nowait", "global"];
    owned.flags = flags.iter().map(|flag| words.flag(flag)).collect();
    owned.table = words.table();
    if verb == "qos" {
        owned.number = words.next().parse().unwrap();
    }
    while let Some(word) = words.try_next() {
        owned.words.push(word);
    }
    owned
}
