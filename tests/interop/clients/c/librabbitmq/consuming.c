/* What consumers are given. */
#include "interop.h"

#include <stdio.h>
#include <sys/time.h>

#define MESSAGES 100
#define PREFETCH 10
#define REQUESTS 100
#define ANOTHER_CHANNEL 2

/* The delivery of the message with that number; its tag. */
static uint64_t expect(amqp_connection_state_t connection, int number, bool redelivered) {
    char body[32];
    snprintf(body, sizeof body, "message %d", number);
    return expect_delivery(connection, body, redelivered);
}

/* What the broker has sent by now was read while the answer to another request was waited for. */
static void check_no_more(amqp_connection_state_t connection, unsigned left, const char *queue) {
    struct timeval now = {0};
    amqp_envelope_t envelope;
    unsigned in_queue = ready(connection, queue);
    CHECK(in_queue == left, "%u messages are left, not %u", in_queue, left);
    amqp_rpc_reply_t reply = amqp_consume_message(connection, &envelope, &now, 0);
    CHECK(reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION && reply.library_error == AMQP_STATUS_TIMEOUT,
          "there was one more delivery");
}

void prefetch(void) {
    amqp_connection_state_t connection = connect_to_broker();
    const char *queue = declare_queue(connection, NULL, 0, NULL);
    char body[32];
    for (int i = 0; i < MESSAGES; i++) {
        snprintf(body, sizeof body, "message %d", i);
        publish(connection, DEFAULT_EXCHANGE, queue, NULL, body);
    }
    amqp_basic_qos(connection, CHANNEL, 0, PREFETCH, false);
    check_last(connection, "basic.qos");
    consume(connection, queue, false);

    uint64_t tags[PREFETCH];
    for (int i = 0; i < PREFETCH; i++) tags[i] = expect(connection, i, false);
    check_no_more(connection, MESSAGES - PREFETCH, queue);

    for (int i = 0; i < PREFETCH / 2; i++) acknowledge(connection, tags[i], false);
    acknowledge(connection, tags[PREFETCH - 1], true);
    for (int i = PREFETCH; i < MESSAGES - 1; i++) {
        uint64_t tag = expect(connection, i, false);
        if (i % 3 == 0) acknowledge(connection, tag, true);
    }
    uint64_t last = expect(connection, MESSAGES - 1, false);
    acknowledge(connection, last - 1, true);
    check_status(amqp_basic_nack(connection, CHANNEL, last, false, true), "basic.nack");
    last = expect(connection, MESSAGES - 1, true);
    check_status(amqp_basic_reject(connection, CHANNEL, last, false), "basic.reject");
    check_no_more(connection, 0, queue);

    /* What is not settled goes back to the queue. */
    check_reply(amqp_channel_close(connection, CHANNEL, AMQP_REPLY_SUCCESS), "channel.close");
    open_channel(connection, CHANNEL);
    check_empty(connection, queue);
    disconnect(connection);
}

static void publish_with_priority(amqp_connection_state_t connection, const char *queue, int priority) {
    amqp_basic_properties_t properties = {._flags = AMQP_BASIC_PRIORITY_FLAG, .priority = priority};
    char body[32];
    snprintf(body, sizeof body, "priority %d", priority);
    publish(connection, DEFAULT_EXCHANGE, queue, &properties, body);
}

void priorities(void) {
    amqp_connection_state_t connection = connect_to_broker();
    amqp_table_entry_t arguments[] = {number_entry("x-max-priority", 5)};
    const char *queue = declare_queue(connection, NULL, 1, arguments);
    publish_with_priority(connection, queue, 1);
    publish_with_priority(connection, queue, 5);
    publish_with_priority(connection, queue, 3);
    publish(connection, DEFAULT_EXCHANGE, queue, NULL, "without");
    check_next(connection, queue, "priority 5");
    check_next(connection, queue, "priority 3");
    check_next(connection, queue, "priority 1");
    check_next(connection, queue, "without");
    disconnect(connection);
}

static void ask(amqp_connection_state_t connection, const char *queue, int number) {
    char request[32], correlation[32];
    snprintf(request, sizeof request, "request %d", number);
    snprintf(correlation, sizeof correlation, "correlation-%d", number);
    amqp_basic_properties_t properties = {
        ._flags = AMQP_BASIC_REPLY_TO_FLAG | AMQP_BASIC_CORRELATION_ID_FLAG,
        .reply_to = amqp_cstring_bytes("amq.rabbitmq.reply-to"),
        .correlation_id = amqp_cstring_bytes(correlation),
    };
    publish(connection, DEFAULT_EXCHANGE, queue, &properties, request);
}

static void answer_next(amqp_connection_state_t connection) {
    amqp_envelope_t request;
    char answer[64];
    next_delivery(connection, &request);
    const amqp_basic_properties_t *asked = &request.message.properties;
    CHECK(asked->_flags & AMQP_BASIC_REPLY_TO_FLAG, "the request has no reply_to");
    int length = snprintf(answer, sizeof answer, "answer to %.*s", (int)request.message.body.len,
                          (char *)request.message.body.bytes);
    amqp_basic_properties_t properties = {
        ._flags = AMQP_BASIC_CORRELATION_ID_FLAG, .correlation_id = asked->correlation_id};
    int status = amqp_basic_publish(connection, CHANNEL, amqp_empty_bytes, asked->reply_to, false, false, &properties,
                                    (amqp_bytes_t){length, answer});
    check_status(status, "publish the answer");
    acknowledge(connection, request.delivery_tag, false);
    amqp_destroy_envelope(&request);
}

static void check_answer(amqp_connection_state_t connection, int number) {
    amqp_envelope_t answer;
    char expected[64];
    next_delivery(connection, &answer);
    snprintf(expected, sizeof expected, "correlation-%d", number);
    check_text("the answer's correlation id", answer.message.properties.correlation_id, expected);
    snprintf(expected, sizeof expected, "answer to request %d", number);
    check_text("the answer", answer.message.body, expected);
    amqp_destroy_envelope(&answer);
}

void rpc(void) {
    amqp_connection_state_t server = connect_to_broker(), client = connect_to_broker();
    const char *queue = declare_queue(server, NULL, 0, NULL);
    consume(server, queue, false);
    consume(client, "amq.rabbitmq.reply-to", true);
    for (int i = 0; i < REQUESTS; i++) ask(client, queue, i);
    for (int i = 0; i < REQUESTS; i++) answer_next(server);
    for (int i = 0; i < REQUESTS; i++) check_answer(client, i);
    disconnect(client);
    disconnect(server);
}

/* A consumer waits for messages and gets something else, which it then reads as a method. */
void cancel(void) {
    amqp_connection_state_t connection = connect_to_broker();
    struct timeval timeout = {.tv_sec = DEADLINE_S};
    amqp_envelope_t envelope;
    const char *queue = declare_queue(connection, NULL, 0, NULL);
    amqp_basic_consume(connection, CHANNEL, amqp_cstring_bytes(queue), amqp_cstring_bytes("the-consumer"), false,
                       false, false, amqp_empty_table);
    check_last(connection, "basic.consume");
    open_channel(connection, ANOTHER_CHANNEL);
    delete_queue(connection, ANOTHER_CHANNEL, queue);

    amqp_rpc_reply_t reply = amqp_consume_message(connection, &envelope, &timeout, 0);
    CHECK(reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION && reply.library_error == AMQP_STATUS_UNEXPECTED_STATE,
          "the consumer got something else");
    amqp_method_t method = next_method(connection);
    CHECK(method.id == AMQP_BASIC_CANCEL_METHOD, "not basic.cancel, but %s", amqp_method_name(method.id));
    check_text("the consumer", ((amqp_basic_cancel_t *)method.decoded)->consumer_tag, "the-consumer");
    disconnect(connection);
}
