/* A message goes to the broker and comes back. */
#include "interop.h"

#include <amqp_ssl_socket.h>
#include <stdlib.h>
#include <string.h>

#define LARGE_OCTETS 20000000
#define TIMESTAMP 1700000000

enum { TEXT, INTEGER, LONG, BOOLEAN, TIME, TABLE, LIST, HEADERS };

static amqp_basic_properties_t properties_with(amqp_table_t headers) {
    return (amqp_basic_properties_t){
        ._flags = AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG |
                  AMQP_BASIC_CORRELATION_ID_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG | AMQP_BASIC_TYPE_FLAG |
                  AMQP_BASIC_TIMESTAMP_FLAG,
        .content_type = amqp_cstring_bytes("text/plain"),
        .headers = headers,
        .delivery_mode = AMQP_DELIVERY_PERSISTENT,
        .correlation_id = amqp_cstring_bytes("correlation-1"),
        .message_id = amqp_cstring_bytes("message-1"),
        .type = amqp_cstring_bytes("greeting"),
        .timestamp = TIMESTAMP,
    };
}

static void send_message(amqp_connection_state_t connection, const char *queue) {
    amqp_table_entry_t inner[] = {number_entry("inner", 7)};
    amqp_field_value_t list[] = {
        {.kind = AMQP_FIELD_KIND_UTF8, .value.bytes = amqp_cstring_bytes("a")},
        {.kind = AMQP_FIELD_KIND_I32, .value.i32 = 2},
    };
    amqp_table_entry_t headers[HEADERS] = {
        [TEXT] = text_entry("text", "d\xc3\xa9j\xc3\xa0 vu"),
        [INTEGER] = number_entry("integer", -42),
        [LONG] = {amqp_cstring_bytes("long"), {.kind = AMQP_FIELD_KIND_I64, .value.i64 = INT64_C(1) << 40}},
        [BOOLEAN] = {amqp_cstring_bytes("boolean"), {.kind = AMQP_FIELD_KIND_BOOLEAN, .value.boolean = true}},
        [TIME] = {amqp_cstring_bytes("time"), {.kind = AMQP_FIELD_KIND_TIMESTAMP, .value.u64 = TIMESTAMP}},
        [TABLE] = {amqp_cstring_bytes("table"), {.kind = AMQP_FIELD_KIND_TABLE, .value.table = {1, inner}}},
        [LIST] = {amqp_cstring_bytes("list"), {.kind = AMQP_FIELD_KIND_ARRAY, .value.array = {2, list}}},
    };
    amqp_basic_properties_t properties = properties_with((amqp_table_t){HEADERS, headers});
    publish(connection, DEFAULT_EXCHANGE, queue, &properties, "hello");
}

static void check_headers(const amqp_table_t *headers) {
    CHECK(headers->num_entries == HEADERS, "%d headers", headers->num_entries);
    check_text_in(headers, "text", "d\xc3\xa9j\xc3\xa0 vu");
    CHECK(find(headers, "integer", AMQP_FIELD_KIND_I32)->value.i32 == -42, "another integer");
    CHECK(find(headers, "long", AMQP_FIELD_KIND_I64)->value.i64 == INT64_C(1) << 40, "another long integer");
    CHECK(find(headers, "boolean", AMQP_FIELD_KIND_BOOLEAN)->value.boolean, "another boolean");
    CHECK(find(headers, "time", AMQP_FIELD_KIND_TIMESTAMP)->value.u64 == TIMESTAMP, "another timestamp");
    const amqp_table_t *table = &find(headers, "table", AMQP_FIELD_KIND_TABLE)->value.table;
    CHECK(table->num_entries == 1, "%d entries in the nested table", table->num_entries);
    CHECK(find(table, "inner", AMQP_FIELD_KIND_I32)->value.i32 == 7, "another integer in the nested table");
    const amqp_array_t *list = &find(headers, "list", AMQP_FIELD_KIND_ARRAY)->value.array;
    CHECK(list->num_entries == 2, "%d entries in the list", list->num_entries);
    CHECK(list->entries[0].kind == AMQP_FIELD_KIND_UTF8, "the list's first entry is no string");
    check_text("the list's first entry", list->entries[0].value.bytes, "a");
    CHECK(list->entries[1].kind == AMQP_FIELD_KIND_I32 && list->entries[1].value.i32 == 2, "another second entry");
}

static void there_and_back(amqp_connection_state_t connection) {
    const char *queue = declare_queue(connection, NULL, 0, NULL);
    amqp_message_t message;
    send_message(connection, queue);
    CHECK(get(connection, queue, &message, NULL), "the queue is empty");
    check_text("the body", message.body, "hello");

    const amqp_basic_properties_t *got = &message.properties;
    CHECK(got->_flags == properties_with(amqp_empty_table)._flags, "properties were added or lost: %x", got->_flags);
    check_text("content type", got->content_type, "text/plain");
    check_text("correlation id", got->correlation_id, "correlation-1");
    check_text("message id", got->message_id, "message-1");
    check_text("type", got->type, "greeting");
    CHECK(got->delivery_mode == AMQP_DELIVERY_PERSISTENT, "delivery mode %d", got->delivery_mode);
    CHECK(got->timestamp == TIMESTAMP, "another timestamp");
    check_headers(&got->headers);
    amqp_destroy_message(&message);

    check_empty(connection, queue);
    disconnect(connection);
}

void connect_scenario(void) {
    there_and_back(connect_to_broker());
}

void tls(void) {
    amqp_connection_state_t connection = amqp_new_connection();
    amqp_socket_t *socket = amqp_ssl_socket_new(connection);
    CHECK(socket, "there is no TLS socket");
    check_status(amqp_ssl_socket_set_cacert(socket, setting("CA_FILE")), "trust the authority");
    amqp_ssl_socket_set_verify_peer(socket, true);
    amqp_ssl_socket_set_verify_hostname(socket, true);
    amqp_rpc_reply_t reply;
    open_and_login(connection, socket, "AMQPS_PORT", "/", "guest", &reply);
    check_reply(reply, "log in");
    open_channel(connection, CHANNEL);
    there_and_back(connection);
}

void large(void) {
    unsigned char *octets = malloc(LARGE_OCTETS);
    for (int i = 0; i < LARGE_OCTETS; i++) octets[i] = i % 251;
    amqp_bytes_t body = {.len = LARGE_OCTETS, .bytes = octets};
    amqp_basic_properties_t properties = persistent();
    amqp_connection_state_t connection = connect_to_broker();
    const char *queue = declare_queue(connection, NULL, 0, NULL);
    select_confirms(connection);
    publish_bytes(connection, DEFAULT_EXCHANGE, queue, false, &properties, body);
    wait_for_confirms(connection, 1);

    amqp_message_t message;
    CHECK(get(connection, queue, &message, NULL), "the queue is empty");
    CHECK(message.body.len == LARGE_OCTETS, "%zu octets came back", message.body.len);
    CHECK(memcmp(message.body.bytes, octets, LARGE_OCTETS) == 0, "other octets came back");
    amqp_destroy_message(&message);
    free(octets);
    disconnect(connection);
}
