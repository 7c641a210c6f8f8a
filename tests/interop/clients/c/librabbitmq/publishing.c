/* What a publisher is told about its messages. */
#include "interop.h"

#define MESSAGES 1000

static void every_message_is_confirmed(void) {
    amqp_connection_state_t connection = connect_to_broker();
    amqp_basic_properties_t properties = persistent();
    const char *queue = unique();
    declare_durable_queue(connection, queue);
    select_confirms(connection);
    for (int i = 0; i < MESSAGES; i++) publish(connection, DEFAULT_EXCHANGE, queue, &properties, "confirm me");
    wait_for_confirms(connection, MESSAGES);
    CHECK(ready(connection, queue) == MESSAGES, "not every message is in the queue");
    delete_queue(connection, CHANNEL, queue);
    disconnect(connection);
}

static void unroutable_message_comes_back(void) {
    amqp_connection_state_t connection = connect_to_broker();
    select_confirms(connection);
    publish_bytes(connection, DEFAULT_EXCHANGE, unique(), true, NULL, amqp_cstring_bytes("to nobody"));

    amqp_method_t method = next_method(connection);
    CHECK(method.id == AMQP_BASIC_RETURN_METHOD, "not basic.return, but %s", amqp_method_name(method.id));
    amqp_basic_return_t *returned = method.decoded;
    CHECK(returned->reply_code == AMQP_NO_ROUTE, "it came back with %d", returned->reply_code);
    check_text("why it came back", returned->reply_text, "NO_ROUTE");
    amqp_message_t message;
    check_reply(amqp_read_message(connection, CHANNEL, &message, 0), "read the message that came back");
    check_text("the body that came back", message.body, "to nobody");
    amqp_destroy_message(&message);
    wait_for_confirms(connection, 1);
    disconnect(connection);
}

static void full_queue_refuses(void) {
    amqp_connection_state_t connection = connect_to_broker();
    amqp_table_entry_t arguments[] = {number_entry("x-max-length", 1), text_entry("x-overflow", "reject-publish")};
    const char *queue = declare_queue(connection, unique(), 2, arguments);
    select_confirms(connection);
    publish(connection, DEFAULT_EXCHANGE, queue, NULL, "first");
    wait_for_confirms(connection, 1);
    publish(connection, DEFAULT_EXCHANGE, queue, NULL, "second");
    amqp_method_t method = next_method(connection);
    CHECK(method.id == AMQP_BASIC_NACK_METHOD, "not basic.nack, but %s", amqp_method_name(method.id));
    CHECK(((amqp_basic_nack_t *)method.decoded)->delivery_tag == 2, "another message was refused");
    check_next(connection, queue, "first");
    check_empty(connection, queue);
    disconnect(connection);
}

void confirms(void) {
    every_message_is_confirmed();
    unroutable_message_comes_back();
    full_queue_refuses();
}

static void commit(amqp_connection_state_t connection) {
    amqp_tx_commit(connection, CHANNEL);
    check_last(connection, "tx.commit");
}

static void rollback(amqp_connection_state_t connection) {
    amqp_tx_rollback(connection, CHANNEL);
    check_last(connection, "tx.rollback");
}

static void publish_two(amqp_connection_state_t connection, const char *queue) {
    publish(connection, DEFAULT_EXCHANGE, queue, NULL, "one");
    publish(connection, DEFAULT_EXCHANGE, queue, NULL, "two");
}

/* Gets a message and acknowledges it, as far as the transaction is concerned. */
static void settle_next(amqp_connection_state_t connection, const char *queue) {
    amqp_message_t message;
    uint64_t tag;
    CHECK(get(connection, queue, &message, &tag), "the queue is empty");
    amqp_destroy_message(&message);
    acknowledge(connection, tag, false);
}

void transactions(void) {
    amqp_connection_state_t connection = connect_to_broker();
    const char *queue = declare_queue(connection, NULL, 0, NULL);
    amqp_tx_select(connection, CHANNEL);
    check_last(connection, "tx.select");
    publish_two(connection, queue);
    rollback(connection);
    CHECK(ready(connection, queue) == 0, "a rollback left messages");
    publish_two(connection, queue);
    CHECK(ready(connection, queue) == 0, "messages before the commit");
    commit(connection);
    CHECK(ready(connection, queue) == 2, "not two messages after a commit");

    settle_next(connection, queue);
    commit(connection);
    settle_next(connection, queue);
    rollback(connection);
    check_reply(amqp_channel_close(connection, CHANNEL, AMQP_REPLY_SUCCESS), "channel.close");
    open_channel(connection, CHANNEL);
    check_next(connection, queue, "two"); /* its acknowledgement was rolled back */
    check_empty(connection, queue);
    disconnect(connection);
}
