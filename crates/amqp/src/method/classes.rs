//! The method table: ids, names, fields and their order, of all methods.
//!
//! `method/define.rs` explains the notation. The table is a list and therefore long; it is in
//! ascending order of class and method id.
//!
//! RabbitMQ 4.3.6, observed: every short string of a client's method must be UTF-8, except exchange
//! and routing key of basic.publish, which are carried as they are into basic.deliver, basic.get-ok
//! and basic.return. Hence [`ShortBytes`] there.

use super::define::define_methods;
use super::fields::{
    Arguments, Bit, Field, FieldReader, FieldWriter, Long, LongLong, LongStr, Octet, Short,
    ShortBytes, ShortStr, Table,
};
use super::{MethodErrorKind, MethodId};
use crate::primitives::put_u16;
use crate::table::TableRef;

define_methods! {
    /// The server opens the negotiation.
    ConnectionStart<'a> = (10, 10, "connection.start") {
        /// 0 for AMQP 0-9-1.
        version_major: Octet,
        /// 9 for AMQP 0-9-1.
        version_minor: Octet,
        /// Name, version and capabilities of the server.
        server_properties: Table,
        /// SASL mechanisms, separated by spaces.
        mechanisms: LongStr,
        /// Locales, separated by spaces.
        locales: LongStr,
    }
    /// The client chooses how to authenticate.
    ConnectionStartOk<'a> = (10, 11, "connection.start-ok") {
        /// Name, version and capabilities of the client.
        client_properties: Table,
        /// The chosen SASL mechanism.
        mechanism: ShortStr,
        /// The mechanism's first response.
        response: LongStr,
        /// The chosen locale.
        locale: ShortStr,
    }
    /// The server challenges the client.
    ConnectionSecure<'a> = (10, 20, "connection.secure") {
        /// The mechanism's challenge.
        challenge: LongStr,
    }
    /// The client answers a challenge.
    ConnectionSecureOk<'a> = (10, 21, "connection.secure-ok") {
        /// The mechanism's response.
        response: LongStr,
    }
    /// The server proposes limits.
    ConnectionTune = (10, 30, "connection.tune") {
        /// Largest channel number, 0 for no limit.
        channel_max: Short,
        /// Largest frame in bytes, 0 for no limit.
        frame_max: Long,
        /// Interval in seconds, 0 for none.
        heartbeat: Short,
    }
    /// The client settles the limits.
    ConnectionTuneOk = (10, 31, "connection.tune-ok") {
        /// Largest channel number, 0 for no limit.
        channel_max: Short,
        /// Largest frame in bytes, 0 for no limit.
        frame_max: Long,
        /// Interval in seconds, 0 for none.
        heartbeat: Short,
    }
    /// The client names the virtual host to work in.
    ConnectionOpen<'a> = (10, 40, "connection.open") {
        /// The virtual host's name.
        virtual_host: ShortStr,
        ; [ShortStr, Bit]
    }
    /// The connection is ready.
    ConnectionOpenOk = (10, 41, "connection.open-ok") { [ShortStr] }
    /// Either side ends the connection.
    ConnectionClose<'a> = (10, 50, "connection.close") {
        /// Reply code, see [`ReplyCode`](crate::reply_code::ReplyCode).
        reply_code: Short,
        /// Reply text: name of the code and explanation.
        reply_text: ShortStr,
        /// The class of the method that failed, else 0.
        class_id: Short,
        /// The method that failed, else 0.
        method_id: Short,
    }
    /// The end of the connection is confirmed.
    ConnectionCloseOk = (10, 51, "connection.close-ok") {}
    /// The server stops reading from a client that publishes.
    ConnectionBlocked<'a> = (10, 60, "connection.blocked") {
        /// The resource that is low.
        reason: ShortStr,
    }
    /// The server reads again.
    ConnectionUnblocked = (10, 61, "connection.unblocked") {}
    /// The client replaces the credentials of a live connection.
    ConnectionUpdateSecret<'a> = (10, 70, "connection.update-secret") {
        /// The new secret, a token.
        new_secret: LongStr,
        /// Reason for the replacement.
        reason: ShortStr,
    }
    /// The new credentials are accepted.
    ConnectionUpdateSecretOk = (10, 71, "connection.update-secret-ok") {}

    /// Opens a channel.
    ChannelOpen = (20, 10, "channel.open") { [ShortStr] }
    /// The channel is open.
    ChannelOpenOk = (20, 11, "channel.open-ok") { [LongStr] }
    /// Asks the other side to stop or go on with sending content.
    ChannelFlow = (20, 20, "channel.flow") {
        /// True to continue, false to stop.
        active: Bit,
    }
    /// The other side has stopped or goes on.
    ChannelFlowOk = (20, 21, "channel.flow-ok") {
        /// True if the peer continues.
        active: Bit,
    }
    /// Either side ends the channel.
    ChannelClose<'a> = (20, 40, "channel.close") {
        /// Reply code, see [`ReplyCode`](crate::reply_code::ReplyCode).
        reply_code: Short,
        /// Reply text: name of the code and explanation.
        reply_text: ShortStr,
        /// The class of the method that failed, else 0.
        class_id: Short,
        /// The method that failed, else 0.
        method_id: Short,
    }
    /// The end of the channel is confirmed.
    ChannelCloseOk = (20, 41, "channel.close-ok") {}

    /// Asks for access to a realm: left from AMQP 0-8, RabbitMQ grants it always.
    AccessRequest<'a> = (30, 10, "access.request") {
        /// The realm's name.
        realm: ShortStr,
        /// Ask for exclusive access.
        exclusive: Bit,
        /// Ask for passive access.
        passive: Bit,
        /// Ask for active access.
        active: Bit,
        /// Ask for write access.
        write: Bit,
        /// Ask for read access.
        read: Bit,
    }
    /// Grants access to a realm.
    AccessRequestOk = (30, 11, "access.request-ok") {
        /// The number of the grant; RabbitMQ 4.3.6 answers 1, observed, and ignores it elsewhere.
        ticket: Short,
    }

    /// Declares an exchange.
    ExchangeDeclare<'a> = (40, 10, "exchange.declare") {
        [Short]
        /// The exchange's name.
        exchange: ShortStr,
        /// `direct`, `fanout`, `topic`, `headers` or a plug-in's type.
        exchange_type: ShortStr,
        /// Only check that it exists.
        passive: Bit,
        /// Keep it over a restart.
        durable: Bit,
        /// Delete it with its last binding.
        auto_delete: Bit,
        /// Refuse publishes from clients.
        internal: Bit,
        /// Do not answer.
        nowait: Bit,
        /// Optional arguments.
        arguments: Table,
    }
    /// The exchange exists.
    ExchangeDeclareOk = (40, 11, "exchange.declare-ok") {}
    /// Deletes an exchange.
    ExchangeDelete<'a> = (40, 20, "exchange.delete") {
        [Short]
        /// The exchange's name.
        exchange: ShortStr,
        /// Only if it has no bindings.
        if_unused: Bit,
        /// Do not answer.
        nowait: Bit,
    }
    /// The exchange does not exist.
    ExchangeDeleteOk = (40, 21, "exchange.delete-ok") {}
    /// Binds an exchange to an exchange.
    ExchangeBind<'a> = (40, 30, "exchange.bind") {
        [Short]
        /// The exchange that receives.
        destination: ShortStr,
        /// The exchange that routes.
        source: ShortStr,
        /// The binding's key.
        routing_key: ShortStr,
        /// Do not answer.
        nowait: Bit,
        /// The binding's arguments.
        arguments: Table,
    }
    /// The binding exists.
    ExchangeBindOk = (40, 31, "exchange.bind-ok") {}
    /// Removes a binding of an exchange to an exchange.
    ExchangeUnbind<'a> = (40, 40, "exchange.unbind") {
        [Short]
        /// The exchange that receives.
        destination: ShortStr,
        /// The exchange that routes.
        source: ShortStr,
        /// The binding's key.
        routing_key: ShortStr,
        /// Do not answer.
        nowait: Bit,
        /// The binding's arguments.
        arguments: Table,
    }
    /// The binding does not exist.
    ExchangeUnbindOk = (40, 51, "exchange.unbind-ok") {}

    /// Declares a queue.
    QueueDeclare<'a> = (50, 10, "queue.declare") {
        [Short]
        /// The queue's name; empty for one that the server chooses.
        queue: ShortStr,
        /// Only check that it exists.
        passive: Bit,
        /// Keep it over a restart.
        durable: Bit,
        /// For this connection alone, and deleted with it.
        exclusive: Bit,
        /// Delete it with its last consumer.
        auto_delete: Bit,
        /// Do not answer.
        nowait: Bit,
        /// Optional arguments.
        arguments: Table,
    }
    /// The queue exists.
    QueueDeclareOk<'a> = (50, 11, "queue.declare-ok") {
        /// The queue's name.
        queue: ShortStr,
        /// Number of ready messages.
        message_count: Long,
        /// Number of consumers.
        consumer_count: Long,
    }
    /// Binds a queue to an exchange.
    QueueBind<'a> = (50, 20, "queue.bind") {
        [Short]
        /// The queue's name.
        queue: ShortStr,
        /// The exchange's name.
        exchange: ShortStr,
        /// The binding's key.
        routing_key: ShortStr,
        /// Do not answer.
        nowait: Bit,
        /// The binding's arguments.
        arguments: Table,
    }
    /// The binding exists.
    QueueBindOk = (50, 21, "queue.bind-ok") {}
    /// Throws a queue's ready messages away.
    QueuePurge<'a> = (50, 30, "queue.purge") {
        [Short]
        /// The queue's name.
        queue: ShortStr,
        /// Do not answer.
        nowait: Bit,
    }
    /// The messages are gone.
    QueuePurgeOk = (50, 31, "queue.purge-ok") {
        /// Number of purged messages.
        message_count: Long,
    }
    /// Deletes a queue.
    QueueDelete<'a> = (50, 40, "queue.delete") {
        [Short]
        /// The queue's name.
        queue: ShortStr,
        /// Only if it has no consumers.
        if_unused: Bit,
        /// Only if it has no messages.
        if_empty: Bit,
        /// Do not answer.
        nowait: Bit,
    }
    /// The queue does not exist.
    QueueDeleteOk = (50, 41, "queue.delete-ok") {
        /// Number of deleted messages.
        message_count: Long,
    }
    /// Removes a binding of a queue; always answered.
    QueueUnbind<'a> = (50, 50, "queue.unbind") {
        [Short]
        /// The queue's name.
        queue: ShortStr,
        /// The exchange's name.
        exchange: ShortStr,
        /// The binding's key.
        routing_key: ShortStr,
        /// The binding's arguments.
        arguments: Table,
    }
    /// The binding does not exist.
    QueueUnbindOk = (50, 51, "queue.unbind-ok") {}

    /// Limits how much is delivered without acknowledgement.
    BasicQos = (60, 10, "basic.qos") {
        /// In bytes; RabbitMQ knows only 0, no limit.
        prefetch_size: Long,
        /// In messages, 0 for no limit.
        prefetch_count: Short,
        /// For the channel as a whole, not for each new consumer.
        global: Bit,
    }
    /// The limit is set.
    BasicQosOk = (60, 11, "basic.qos-ok") {}
    /// Starts a consumer.
    BasicConsume<'a> = (60, 20, "basic.consume") {
        [Short]
        /// The queue's name.
        queue: ShortStr,
        /// The consumer's tag; empty for one that the server chooses.
        consumer_tag: ShortStr,
        /// Not to receive what this connection publishes; RabbitMQ ignores it.
        no_local: Bit,
        /// Deliveries count as acknowledged.
        no_ack: Bit,
        /// As the queue's only consumer.
        exclusive: Bit,
        /// Do not answer.
        nowait: Bit,
        /// The consumer's arguments.
        arguments: Table,
    }
    /// The consumer is started.
    BasicConsumeOk<'a> = (60, 21, "basic.consume-ok") {
        /// The consumer's tag.
        consumer_tag: ShortStr,
    }
    /// The client ends a consumer, or the server reports its end.
    BasicCancel<'a> = (60, 30, "basic.cancel") {
        /// The consumer's tag.
        consumer_tag: ShortStr,
        /// Do not answer.
        nowait: Bit,
    }
    /// The consumer has ended.
    BasicCancelOk<'a> = (60, 31, "basic.cancel-ok") {
        /// The consumer's tag.
        consumer_tag: ShortStr,
    }
    /// Publishes the message that follows.
    BasicPublish<'a> = (60, 40, "basic.publish") {
        [Short]
        /// The exchange's name, any bytes; empty for the default exchange.
        exchange: ShortBytes,
        /// The routing key, any bytes.
        routing_key: ShortBytes,
        /// Return the message if no queue takes it.
        mandatory: Bit,
        /// Return the message if no consumer takes it at once; RabbitMQ refuses this.
        immediate: Bit,
    }
    /// Returns the message that follows to its publisher.
    BasicReturn<'a> = (60, 50, "basic.return") {
        /// Reply code, see [`ReplyCode`](crate::reply_code::ReplyCode).
        reply_code: Short,
        /// Reply text: name of the code and explanation.
        reply_text: ShortStr,
        /// The exchange it was published to, any bytes.
        exchange: ShortBytes,
        /// Routing key of the message, any bytes.
        routing_key: ShortBytes,
    }
    /// Delivers the message that follows to a consumer.
    BasicDeliver<'a> = (60, 60, "basic.deliver") {
        /// The consumer's tag.
        consumer_tag: ShortStr,
        /// The delivery's number on this channel, from 1.
        delivery_tag: LongLong,
        /// True if the message was delivered before.
        redelivered: Bit,
        /// The exchange it was published to, any bytes.
        exchange: ShortBytes,
        /// Routing key of the message, any bytes.
        routing_key: ShortBytes,
    }
    /// Asks for one message.
    BasicGet<'a> = (60, 70, "basic.get") {
        [Short]
        /// The queue's name.
        queue: ShortStr,
        /// The message counts as acknowledged.
        no_ack: Bit,
    }
    /// Delivers the one message that follows.
    BasicGetOk<'a> = (60, 71, "basic.get-ok") {
        /// The delivery's number on this channel, from 1.
        delivery_tag: LongLong,
        /// True if the message was delivered before.
        redelivered: Bit,
        /// The exchange it was published to, any bytes.
        exchange: ShortBytes,
        /// Routing key of the message, any bytes.
        routing_key: ShortBytes,
        /// Number of messages that are still ready.
        message_count: Long,
    }
    /// There is no message.
    BasicGetEmpty = (60, 72, "basic.get-empty") { [ShortStr] }
    /// Acknowledges deliveries, or confirms publishes.
    BasicAck = (60, 80, "basic.ack") {
        /// The number of a delivery, or of a publish.
        delivery_tag: LongLong,
        /// All up to that number; with 0, all.
        multiple: Bit,
    }
    /// Rejects a delivery.
    BasicReject = (60, 90, "basic.reject") {
        /// The delivery's number.
        delivery_tag: LongLong,
        /// Put it back, rather than dead-letter it.
        requeue: Bit,
    }
    /// Requeues all unacknowledged deliveries, without an answer.
    BasicRecoverAsync = (60, 100, "basic.recover-async") {
        /// To any consumer; RabbitMQ refuses false.
        requeue: Bit,
    }
    /// Requeues all unacknowledged deliveries.
    BasicRecover = (60, 110, "basic.recover") {
        /// To any consumer; RabbitMQ refuses false.
        requeue: Bit,
    }
    /// The deliveries are requeued.
    BasicRecoverOk = (60, 111, "basic.recover-ok") {}
    /// Rejects deliveries, or refuses publishes.
    BasicNack = (60, 120, "basic.nack") {
        /// The number of a delivery, or of a publish.
        delivery_tag: LongLong,
        /// All up to that number; with 0, all.
        multiple: Bit,
        /// Put them back, rather than dead-letter them.
        requeue: Bit,
    }

    /// Has the server confirm every publish on this channel.
    ConfirmSelect = (85, 10, "confirm.select") {
        /// Do not answer.
        nowait: Bit,
    }
    /// Publishes are confirmed from here on.
    ConfirmSelectOk = (85, 11, "confirm.select-ok") {}

    /// Makes the channel transactional.
    TxSelect = (90, 10, "tx.select") {}
    /// The channel is transactional.
    TxSelectOk = (90, 11, "tx.select-ok") {}
    /// Commits the transaction and begins the next.
    TxCommit = (90, 20, "tx.commit") {}
    /// The transaction is committed.
    TxCommitOk = (90, 21, "tx.commit-ok") {}
    /// Abandons the transaction and begins the next.
    TxRollback = (90, 30, "tx.rollback") {}
    /// The transaction is abandoned.
    TxRollbackOk = (90, 31, "tx.rollback-ok") {}
}
