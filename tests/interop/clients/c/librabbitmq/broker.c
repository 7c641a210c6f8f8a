/* Connections, queues and messages, as every scenario needs them. */
#include "interop.h"

#include <amqp_tcp_socket.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

const char *setting(const char *name) {
    const char *value = getenv(name);
    CHECK(value, "%s is not set", name);
    return value;
}

void open_and_login(amqp_connection_state_t connection, amqp_socket_t *socket, const char *port, const char *vhost,
                    const char *password, amqp_rpc_reply_t *reply) {
    CHECK(socket, "there is no socket");
    check_status(amqp_socket_open(socket, setting("AMQP_HOST"), atoi(setting(port))), "open the socket");
    /* The library itself does not ask to be told when a consumer is cancelled. */
    amqp_table_entry_t notify = {amqp_cstring_bytes("consumer_cancel_notify"),
                                 {.kind = AMQP_FIELD_KIND_BOOLEAN, .value.boolean = true}};
    amqp_table_entry_t capabilities = {amqp_cstring_bytes("capabilities"),
                                       {.kind = AMQP_FIELD_KIND_TABLE, .value.table = {1, &notify}}};
    amqp_table_t properties = {1, &capabilities};
    *reply = amqp_login_with_properties(connection, vhost, AMQP_DEFAULT_MAX_CHANNELS, AMQP_DEFAULT_FRAME_SIZE,
                                        AMQP_DEFAULT_HEARTBEAT, &properties, AMQP_SASL_METHOD_PLAIN, "guest", password);
}

void open_channel(amqp_connection_state_t connection, amqp_channel_t channel) {
    amqp_channel_open(connection, channel);
    check_last(connection, "channel.open");
}

amqp_connection_state_t connect_to_broker(void) {
    amqp_connection_state_t connection = amqp_new_connection();
    amqp_rpc_reply_t reply;
    open_and_login(connection, amqp_tcp_socket_new(connection), "AMQP_PORT", "/", "guest", &reply);
    check_reply(reply, "log in");
    open_channel(connection, CHANNEL);
    return connection;
}

void disconnect(amqp_connection_state_t connection) {
    check_reply(amqp_channel_close(connection, CHANNEL, AMQP_REPLY_SUCCESS), "channel.close");
    check_reply(amqp_connection_close(connection, AMQP_REPLY_SUCCESS), "connection.close");
    check_status(amqp_destroy_connection(connection), "destroy the connection");
}

const char *unique(void) {
    static unsigned names;
    struct timespec now;
    char name[80];
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(name, sizeof name, "interop-%d-%lx-%u", (int)getpid(), now.tv_nsec, names++);
    return strdup(name);
}

amqp_table_entry_t text_entry(const char *name, const char *text) {
    amqp_table_entry_t entry = {.key = amqp_cstring_bytes(name)};
    entry.value.kind = AMQP_FIELD_KIND_UTF8;
    entry.value.value.bytes = amqp_cstring_bytes(text);
    return entry;
}

amqp_table_entry_t number_entry(const char *name, int32_t number) {
    amqp_table_entry_t entry = {.key = amqp_cstring_bytes(name)};
    entry.value.kind = AMQP_FIELD_KIND_I32;
    entry.value.value.i32 = number;
    return entry;
}

static amqp_queue_declare_ok_t *declare(amqp_connection_state_t connection, const char *name, bool passive,
                                        bool durable, bool exclusive, amqp_table_t arguments) {
    amqp_queue_declare_ok_t *declared = amqp_queue_declare(connection, CHANNEL, amqp_cstring_bytes(name), passive,
                                                           durable, exclusive, false, arguments);
    check_last(connection, "queue.declare");
    return declared;
}

const char *declare_queue(amqp_connection_state_t connection, const char *name, int count,
                          amqp_table_entry_t *arguments) {
    amqp_table_t table = {.num_entries = count, .entries = arguments};
    amqp_bytes_t named = declare(connection, name ? name : "", false, false, true, table)->queue;
    return strndup(named.bytes, named.len);
}

void declare_durable_queue(amqp_connection_state_t connection, const char *name) {
    declare(connection, name, false, true, false, amqp_empty_table);
}

void bind_queue(amqp_connection_state_t connection, const char *queue, const char *exchange, const char *key) {
    amqp_queue_bind(connection, CHANNEL, amqp_cstring_bytes(queue), amqp_cstring_bytes(exchange),
                    amqp_cstring_bytes(key), amqp_empty_table);
    check_last(connection, "queue.bind");
}

void delete_queue(amqp_connection_state_t connection, amqp_channel_t channel, const char *queue) {
    amqp_queue_delete(connection, channel, amqp_cstring_bytes(queue), false, false);
    check_last(connection, "queue.delete");
}

unsigned ready(amqp_connection_state_t connection, const char *queue) {
    return declare(connection, queue, true, false, false, amqp_empty_table)->message_count;
}

void publish_bytes(amqp_connection_state_t connection, const char *exchange, const char *key, bool mandatory,
                   const amqp_basic_properties_t *properties, amqp_bytes_t body) {
    int status = amqp_basic_publish(connection, CHANNEL, amqp_cstring_bytes(exchange), amqp_cstring_bytes(key),
                                    mandatory, false, properties, body);
    check_status(status, "basic.publish");
}

void publish(amqp_connection_state_t connection, const char *exchange, const char *key,
             const amqp_basic_properties_t *properties, const char *body) {
    publish_bytes(connection, exchange, key, false, properties, amqp_cstring_bytes(body));
}

amqp_basic_properties_t with_expiration(const char *expiration) {
    return (amqp_basic_properties_t){._flags = AMQP_BASIC_EXPIRATION_FLAG,
                                     .expiration = amqp_cstring_bytes(expiration)};
}

amqp_basic_properties_t persistent(void) {
    return (amqp_basic_properties_t){._flags = AMQP_BASIC_DELIVERY_MODE_FLAG,
                                     .delivery_mode = AMQP_DELIVERY_PERSISTENT};
}

bool get(amqp_connection_state_t connection, const char *queue, amqp_message_t *message, uint64_t *tag) {
    amqp_rpc_reply_t reply = amqp_basic_get(connection, CHANNEL, amqp_cstring_bytes(queue), tag == NULL);
    check_reply(reply, "basic.get");
    if (reply.reply.id == AMQP_BASIC_GET_EMPTY_METHOD) return false;
    if (tag) *tag = ((amqp_basic_get_ok_t *)reply.reply.decoded)->delivery_tag;
    check_reply(amqp_read_message(connection, CHANNEL, message, 0), "read the message that was got");
    return true;
}

void check_next(amqp_connection_state_t connection, const char *queue, const char *body) {
    amqp_message_t message;
    CHECK(get(connection, queue, &message, NULL), "the queue is empty; expected %s", body);
    check_text("the body of the next message", message.body, body);
    amqp_destroy_message(&message);
}

void check_empty(amqp_connection_state_t connection, const char *queue) {
    amqp_message_t message;
    CHECK(!get(connection, queue, &message, NULL), "the queue is not empty");
}

void consume(amqp_connection_state_t connection, const char *queue, bool no_ack) {
    amqp_basic_consume(connection, CHANNEL, amqp_cstring_bytes(queue), amqp_empty_bytes, false, no_ack, false,
                       amqp_empty_table);
    check_last(connection, "basic.consume");
}

void next_delivery(amqp_connection_state_t connection, amqp_envelope_t *envelope) {
    struct timeval timeout = {.tv_sec = DEADLINE_S};
    amqp_maybe_release_buffers(connection);
    check_reply(amqp_consume_message(connection, envelope, &timeout, 0), "the next delivery");
}

uint64_t expect_delivery(amqp_connection_state_t connection, const char *body, bool redelivered) {
    amqp_envelope_t envelope;
    next_delivery(connection, &envelope);
    check_text("the next delivery", envelope.message.body, body);
    CHECK(envelope.redelivered == redelivered, "%s: redelivered is %d", body, envelope.redelivered);
    uint64_t tag = envelope.delivery_tag;
    amqp_destroy_envelope(&envelope);
    return tag;
}

void acknowledge(amqp_connection_state_t connection, uint64_t tag, bool multiple) {
    check_status(amqp_basic_ack(connection, CHANNEL, tag, multiple), "basic.ack");
}

amqp_method_t next_method(amqp_connection_state_t connection) {
    struct timeval timeout = {.tv_sec = DEADLINE_S};
    amqp_frame_t frame;
    amqp_maybe_release_buffers(connection);
    check_status(amqp_simple_wait_frame_noblock(connection, &frame, &timeout), "the next frame");
    CHECK(frame.frame_type == AMQP_FRAME_METHOD, "not a method, but a frame of type %d", frame.frame_type);
    return frame.payload.method;
}

void select_confirms(amqp_connection_state_t connection) {
    amqp_confirm_select(connection, CHANNEL);
    check_last(connection, "confirm.select");
}

void wait_for_confirms(amqp_connection_state_t connection, unsigned count) {
    bool *confirmed = calloc(count + 1, sizeof *confirmed);
    for (unsigned waiting = count; waiting > 0;) {
        amqp_method_t method = next_method(connection);
        CHECK(method.id == AMQP_BASIC_ACK_METHOD, "not basic.ack, but %s", amqp_method_name(method.id));
        amqp_basic_ack_t *ack = method.decoded;
        CHECK(ack->delivery_tag <= count, "%lu is confirmed, which was never published", (long)ack->delivery_tag);
        for (uint64_t tag = ack->multiple ? 1 : ack->delivery_tag; tag <= ack->delivery_tag; tag++) {
            if (!confirmed[tag]) waiting--;
            confirmed[tag] = true;
        }
    }
    free(confirmed);
}
