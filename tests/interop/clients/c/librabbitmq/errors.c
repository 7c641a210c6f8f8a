/* What applications read when the broker refuses something: code and text. */
#include "interop.h"

#include <amqp_tcp_socket.h>
#include <stdio.h>

#define TEXT_MAX 512

/* The channel was closed for this reason; its number can then be used again. */
static void check_closed(amqp_connection_state_t connection, amqp_method_t method, int code, const char *text) {
    CHECK(method.id == AMQP_CHANNEL_CLOSE_METHOD, "not channel.close, but %s", amqp_method_name(method.id));
    amqp_channel_close_t *close = method.decoded;
    CHECK(close->reply_code == code, "not %d, but %d", code, close->reply_code);
    check_text("why the channel was closed", close->reply_text, text);
    amqp_channel_close_ok_t understood = {0};
    check_status(amqp_send_method(connection, CHANNEL, AMQP_CHANNEL_CLOSE_OK_METHOD, &understood), "close-ok");
    open_channel(connection, CHANNEL);
}

static void check_refused(amqp_connection_state_t connection, int code, const char *format, const char *queue) {
    char text[TEXT_MAX];
    amqp_rpc_reply_t reply = amqp_get_rpc_reply(connection);
    CHECK(reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION, "it was not refused");
    snprintf(text, sizeof text, format, queue);
    check_closed(connection, reply.reply, code, text);
}

static void no_such_queue(amqp_connection_state_t connection) {
    const char *queue = unique();
    amqp_queue_declare(connection, CHANNEL, amqp_cstring_bytes(queue), true, false, false, false, amqp_empty_table);
    check_refused(connection, AMQP_NOT_FOUND, "NOT_FOUND - no queue '%s' in vhost '/'", queue);
}

static void other_arguments(amqp_connection_state_t connection) {
    amqp_table_entry_t one_second[] = {number_entry("x-message-ttl", 1000)};
    amqp_table_entry_t two_seconds[] = {number_entry("x-message-ttl", 2000)};
    const char *queue = declare_queue(connection, unique(), 1, one_second);
    amqp_queue_declare(connection, CHANNEL, amqp_cstring_bytes(queue), false, false, true, false,
                       (amqp_table_t){1, two_seconds});
    check_refused(connection, AMQP_PRECONDITION_FAILED,
                  "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue '%s' in vhost '/': received '2000' "
                  "but current is '1000'", queue);
}

/* Publishing has no answer: channel.close comes when it comes. */
static void invalid_expiration(amqp_connection_state_t connection) {
    amqp_basic_properties_t properties = with_expiration("abc");
    publish(connection, DEFAULT_EXCHANGE, unique(), &properties, "never published");
    check_closed(connection, next_method(connection), AMQP_PRECONDITION_FAILED,
                 "PRECONDITION_FAILED - invalid expiration 'abc': no_integer");
}

static void locked_queue(amqp_connection_state_t connection) {
    amqp_connection_state_t owner = connect_to_broker();
    const char *queue = declare_queue(owner, NULL, 0, NULL);
    amqp_queue_declare(connection, CHANNEL, amqp_cstring_bytes(queue), true, false, false, false, amqp_empty_table);
    check_refused(connection, AMQP_RESOURCE_LOCKED,
                  "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '%s' in vhost '/'. It could be "
                  "originally declared on another connection or the exclusive property value does not match that of "
                  "the original declaration.", queue);
    disconnect(owner);
}

static void no_login(const char *vhost, const char *password, int code, const char *text) {
    amqp_connection_state_t connection = amqp_new_connection();
    amqp_rpc_reply_t reply;
    open_and_login(connection, amqp_tcp_socket_new(connection), "AMQP_PORT", vhost, password, &reply);
    CHECK(reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION && reply.reply.id == AMQP_CONNECTION_CLOSE_METHOD,
          "the connection was not closed, or without a reason");
    amqp_connection_close_t *close = reply.reply.decoded;
    CHECK(close->reply_code == code, "not %d, but %d", code, close->reply_code);
    check_text("why the connection was closed", close->reply_text, text);
    check_status(amqp_destroy_connection(connection), "destroy the connection");
}

void errors(void) {
    amqp_connection_state_t connection = connect_to_broker();
    no_such_queue(connection);
    other_arguments(connection);
    invalid_expiration(connection);
    locked_queue(connection);
    disconnect(connection);
    no_login("/", "wrong", AMQP_ACCESS_REFUSED,
             "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see the broker "
             "logfile.");
    no_login("nope", "guest", AMQP_NOT_ALLOWED, "NOT_ALLOWED - vhost nope not found");
}
