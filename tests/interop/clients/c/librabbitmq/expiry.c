/* Messages and queues that live for a while. */
#include "interop.h"

#define MESSAGE_TTL_MS 1000
#define EXPIRES_MS 300

static void messages_expire(void) {
    amqp_connection_state_t connection = connect_to_broker();
    amqp_table_entry_t arguments[] = {number_entry("x-message-ttl", MESSAGE_TTL_MS)};
    const char *queue = declare_queue(connection, NULL, 1, arguments);
    for (int i = 0; i < 3; i++) publish(connection, DEFAULT_EXCHANGE, queue, NULL, "short-lived");
    EVENTUALLY(ready(connection, queue) == 3);
    EVENTUALLY(ready(connection, queue) == 0);
    disconnect(connection);
}

static bool exists(amqp_connection_state_t connection, const char *queue) {
    amqp_queue_declare(connection, CHANNEL, amqp_cstring_bytes(queue), true, false, false, false, amqp_empty_table);
    amqp_rpc_reply_t reply = amqp_get_rpc_reply(connection);
    if (reply.reply_type == AMQP_RESPONSE_NORMAL) return true;
    CHECK(reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION && reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD,
          "the channel was not closed");
    amqp_channel_close_t *close = reply.reply.decoded;
    CHECK(close->reply_code == AMQP_NOT_FOUND, "the channel was closed with %d", close->reply_code);
    return false;
}

/* To ask for the queue is to use it: whoever looks must not look more often than it would expire. */
static bool exists_after_a_while(amqp_connection_state_t connection, const char *queue) {
    sleep_ms(2 * EXPIRES_MS);
    return exists(connection, queue);
}

static void unused_queue_is_gone(void) {
    amqp_connection_state_t connection = connect_to_broker();
    amqp_table_entry_t arguments[] = {number_entry("x-expires", EXPIRES_MS)};
    const char *queue = declare_queue(connection, NULL, 1, arguments);
    CHECK(exists(connection, queue), "the queue is gone at once");
    EVENTUALLY(!exists_after_a_while(connection, queue));
    check_reply(amqp_connection_close(connection, AMQP_REPLY_SUCCESS), "connection.close");
}

void queue_ttl(void) {
    messages_expire();
    unused_queue_is_gone();
}

static void publish_for(amqp_connection_state_t connection, const char *queue, const char *expiration) {
    amqp_basic_properties_t properties = with_expiration(expiration);
    publish(connection, DEFAULT_EXCHANGE, queue, &properties, expiration);
}

void message_ttl(void) {
    amqp_connection_state_t connection = connect_to_broker();
    const char *queue = declare_queue(connection, NULL, 0, NULL);
    publish_for(connection, queue, "1000");
    publish_for(connection, queue, "60000");
    EVENTUALLY(ready(connection, queue) == 2);
    EVENTUALLY(ready(connection, queue) == 1);
    amqp_message_t second;
    CHECK(get(connection, queue, &second, NULL), "the queue is empty");
    check_text("the message that is left", second.body, "60000");
    CHECK(second.properties._flags & AMQP_BASIC_EXPIRATION_FLAG, "it has lost its expiration");
    check_text("its expiration", second.properties.expiration, "60000");
    amqp_destroy_message(&second);

    publish_for(connection, queue, "0");
    check_empty(connection, queue);
    disconnect(connection);
}
