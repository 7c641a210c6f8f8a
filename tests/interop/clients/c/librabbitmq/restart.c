/* The broker is killed and started again; the client connects again by itself, as it has no recovery. */
#include "interop.h"

#include <stdio.h>
#include <string.h>
#include <sys/time.h>

static void restart_broker(void) {
    char answer[32];
    printf("restart\n");
    fflush(stdout);
    CHECK(fgets(answer, sizeof answer, stdin) && strcmp(answer, "restarted\n") == 0, "the broker was not restarted");
}

static void publish_persistent(amqp_connection_state_t connection, const char *exchange, const char *body) {
    amqp_basic_properties_t properties = persistent();
    publish(connection, exchange, "", &properties, body);
}

/* Its consumer is told so, too. */
static void check_lost(amqp_connection_state_t connection) {
    struct timeval timeout = {.tv_sec = DEADLINE_S};
    amqp_envelope_t envelope;
    amqp_rpc_reply_t reply = amqp_consume_message(connection, &envelope, &timeout, 0);
    CHECK(reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION, "the connection was not lost");
    CHECK(reply.library_error == AMQP_STATUS_CONNECTION_CLOSED || reply.library_error == AMQP_STATUS_SOCKET_ERROR,
          "the connection was not lost: %s", amqp_error_string2(reply.library_error));
    check_status(amqp_destroy_connection(connection), "destroy the connection");
}

/* One message at a time. */
static amqp_connection_state_t consumer_of(const char *queue) {
    amqp_connection_state_t connection = connect_to_broker();
    amqp_basic_qos(connection, CHANNEL, 0, 1, false);
    check_last(connection, "basic.qos");
    consume(connection, queue, false);
    return connection;
}

void restart(void) {
    amqp_connection_state_t publisher = connect_to_broker();
    const char *exchange = unique(), *queue = unique();
    amqp_exchange_declare(publisher, CHANNEL, amqp_cstring_bytes(exchange), amqp_cstring_bytes("fanout"), false, true,
                          false, false, amqp_empty_table);
    check_last(publisher, "exchange.declare");
    declare_durable_queue(publisher, queue);
    bind_queue(publisher, queue, exchange, "");
    select_confirms(publisher);
    publish_persistent(publisher, exchange, "delivered before");
    publish_persistent(publisher, exchange, "waiting");
    wait_for_confirms(publisher, 2);
    amqp_connection_state_t consumer = consumer_of(queue);
    expect_delivery(consumer, "delivered before", false);

    restart_broker();

    check_lost(consumer);
    check_lost(publisher);
    consumer = consumer_of(queue);
    /* Both are marked: after a crash nobody knows what had been delivered last. */
    acknowledge(consumer, expect_delivery(consumer, "delivered before", true), false);
    acknowledge(consumer, expect_delivery(consumer, "waiting", true), false);
    publisher = connect_to_broker();
    select_confirms(publisher);
    publish_persistent(publisher, exchange, "after the restart");
    wait_for_confirms(publisher, 1);
    acknowledge(consumer, expect_delivery(consumer, "after the restart", false), false);

    delete_queue(publisher, CHANNEL, queue);
    amqp_exchange_delete(publisher, CHANNEL, amqp_cstring_bytes(exchange), false);
    check_last(publisher, "exchange.delete");
    disconnect(publisher);
    check_status(amqp_destroy_connection(consumer), "destroy the connection");
}
