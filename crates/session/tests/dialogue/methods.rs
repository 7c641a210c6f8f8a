//! The methods of AMQP as a second, naive list: names, ids, fields.
//!
//! Dialogues are written and read with this list instead of the codec under test, so that a mistake
//! in one of the two shows.
//!
//! Kinds of fields: `o` byte, `h` short, `l` long, `L` longlong, `s` short string, `S` long string,
//! `F` table, `b` bit. Fields that mean nothing are called `ticket` and `reserved`.

/// A method: its name, class and method id, and fields as `name:kind` with blanks between.
pub(crate) type Method = (&'static str, u16, u16, &'static str);

/// Every method that RabbitMQ knows, in the order of their ids.
pub(crate) const METHODS: &[Method] = &[
    (
        "connection.start",
        10,
        10,
        "version-major:o version-minor:o server-properties:F mechanisms:S locales:S",
    ),
    ("connection.start-ok", 10, 11, "client-properties:F mechanism:s response:S locale:s"),
    ("connection.secure", 10, 20, "challenge:S"),
    ("connection.secure-ok", 10, 21, "response:S"),
    ("connection.tune", 10, 30, "channel-max:h frame-max:l heartbeat:h"),
    ("connection.tune-ok", 10, 31, "channel-max:h frame-max:l heartbeat:h"),
    ("connection.open", 10, 40, "virtual-host:s reserved:s insist:b"),
    ("connection.open-ok", 10, 41, "reserved:s"),
    ("connection.close", 10, 50, "reply-code:h reply-text:s class-id:h method-id:h"),
    ("connection.close-ok", 10, 51, ""),
    ("connection.blocked", 10, 60, "reason:s"),
    ("connection.unblocked", 10, 61, ""),
    ("connection.update-secret", 10, 70, "new-secret:S reason:s"),
    ("connection.update-secret-ok", 10, 71, ""),
    ("channel.open", 20, 10, "reserved:s"),
    ("channel.open-ok", 20, 11, "reserved:S"),
    ("channel.flow", 20, 20, "active:b"),
    ("channel.flow-ok", 20, 21, "active:b"),
    ("channel.close", 20, 40, "reply-code:h reply-text:s class-id:h method-id:h"),
    ("channel.close-ok", 20, 41, ""),
    ("access.request", 30, 10, "realm:s exclusive:b passive:b active:b write:b read:b"),
    ("access.request-ok", 30, 11, "ticket:h"),
    (
        "exchange.declare",
        40,
        10,
        "ticket:h exchange:s type:s passive:b durable:b auto-delete:b internal:b nowait:b arguments:F",
    ),
    ("exchange.declare-ok", 40, 11, ""),
    ("exchange.delete", 40, 20, "ticket:h exchange:s if-unused:b nowait:b"),
    ("exchange.delete-ok", 40, 21, ""),
    ("exchange.bind", 40, 30, "ticket:h destination:s source:s routing-key:s nowait:b arguments:F"),
    ("exchange.bind-ok", 40, 31, ""),
    (
        "exchange.unbind",
        40,
        40,
        "ticket:h destination:s source:s routing-key:s nowait:b arguments:F",
    ),
    ("exchange.unbind-ok", 40, 51, ""),
    (
        "queue.declare",
        50,
        10,
        "ticket:h queue:s passive:b durable:b exclusive:b auto-delete:b nowait:b arguments:F",
    ),
    ("queue.declare-ok", 50, 11, "queue:s message-count:l consumer-count:l"),
    ("queue.bind", 50, 20, "ticket:h queue:s exchange:s routing-key:s nowait:b arguments:F"),
    ("queue.bind-ok", 50, 21, ""),
    ("queue.purge", 50, 30, "ticket:h queue:s nowait:b"),
    ("queue.purge-ok", 50, 31, "message-count:l"),
    ("queue.delete", 50, 40, "ticket:h queue:s if-unused:b if-empty:b nowait:b"),
    ("queue.delete-ok", 50, 41, "message-count:l"),
    ("queue.unbind", 50, 50, "ticket:h queue:s exchange:s routing-key:s arguments:F"),
    ("queue.unbind-ok", 50, 51, ""),
    ("basic.qos", 60, 10, "prefetch-size:l prefetch-count:h global:b"),
    ("basic.qos-ok", 60, 11, ""),
    (
        "basic.consume",
        60,
        20,
        "ticket:h queue:s consumer-tag:s no-local:b no-ack:b exclusive:b nowait:b arguments:F",
    ),
    ("basic.consume-ok", 60, 21, "consumer-tag:s"),
    ("basic.cancel", 60, 30, "consumer-tag:s nowait:b"),
    ("basic.cancel-ok", 60, 31, "consumer-tag:s"),
    ("basic.publish", 60, 40, "ticket:h exchange:s routing-key:s mandatory:b immediate:b"),
    ("basic.return", 60, 50, "reply-code:h reply-text:s exchange:s routing-key:s"),
    (
        "basic.deliver",
        60,
        60,
        "consumer-tag:s delivery-tag:L redelivered:b exchange:s routing-key:s",
    ),
    ("basic.get", 60, 70, "ticket:h queue:s no-ack:b"),
    (
        "basic.get-ok",
        60,
        71,
        "delivery-tag:L redelivered:b exchange:s routing-key:s message-count:l",
    ),
    ("basic.get-empty", 60, 72, "reserved:s"),
    ("basic.ack", 60, 80, "delivery-tag:L multiple:b"),
    ("basic.reject", 60, 90, "delivery-tag:L requeue:b"),
    ("basic.recover-async", 60, 100, "requeue:b"),
    ("basic.recover", 60, 110, "requeue:b"),
    ("basic.recover-ok", 60, 111, ""),
    ("basic.nack", 60, 120, "delivery-tag:L multiple:b requeue:b"),
    ("confirm.select", 85, 10, "nowait:b"),
    ("confirm.select-ok", 85, 11, ""),
    ("tx.select", 90, 10, ""),
    ("tx.select-ok", 90, 11, ""),
    ("tx.commit", 90, 20, ""),
    ("tx.commit-ok", 90, 21, ""),
    ("tx.rollback", 90, 30, ""),
    ("tx.rollback-ok", 90, 31, ""),
];

/// The properties of a message with their kinds; the first has flag bit 15, the next 14, and so on.
pub(crate) const PROPERTIES: &[(&str, char)] = &[
    ("content-type", 's'),
    ("content-encoding", 's'),
    ("headers", 'F'),
    ("delivery-mode", 'o'),
    ("priority", 'o'),
    ("correlation-id", 's'),
    ("reply-to", 's'),
    ("expiration", 's'),
    ("message-id", 's'),
    ("timestamp", 'L'),
    ("type", 's'),
    ("user-id", 's'),
    ("app-id", 's'),
    ("cluster-id", 's'),
];

/// The method of that name.
pub(crate) fn by_name(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.0 == name)
}

/// The method with these ids.
pub(crate) fn by_id(class_id: u16, method_id: u16) -> Option<&'static Method> {
    METHODS.iter().find(|method| (method.1, method.2) == (class_id, method_id))
}

/// The fields of a method as name and kind.
pub(crate) fn fields(method: &Method) -> impl Iterator<Item = (&'static str, char)> {
    method.3.split_whitespace().map(|field| {
        let (name, kind) = field.split_once(':').unwrap();
        (name, kind.chars().next().unwrap())
    })
}

/// The channel on which a frame of that name stands if a dialogue does not say another.
pub(crate) fn usual_channel(name: &str) -> u16 {
    match name {
        "heartbeat" => 0,
        _ if name.starts_with("connection.") => 0,
        _ => 1,
    }
}
