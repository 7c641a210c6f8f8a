/* Dead letters, and what their headers tell of their deaths. */
#include "interop.h"

#include <stdlib.h>
#include <string.h>

#define PUBLISHED_TO "amq.direct"
#define DEAD_LETTERS "dead letters"
#define CLOCKS_DIFFER_S 60

static const amqp_array_t *deaths(const amqp_message_t *message) {
    return &find(&message->properties.headers, "x-death", AMQP_FIELD_KIND_ARRAY)->value.array;
}

static const amqp_table_t *death_at(const amqp_message_t *message, int index) {
    const amqp_field_value_t *entry = &deaths(message)->entries[index];
    CHECK(entry->kind == AMQP_FIELD_KIND_TABLE, "x-death has a %c where a table should be", entry->kind);
    return &entry->value.table;
}

static void check_death(const amqp_table_t *death, const char *reason, const char *queue) {
    int64_t count = find(death, "count", AMQP_FIELD_KIND_I64)->value.i64;
    CHECK(count == 1, "count is %ld", (long)count);
    check_text_in(death, "reason", reason);
    check_text_in(death, "queue", queue);
    check_text_in(death, "exchange", PUBLISHED_TO);
    const amqp_array_t *keys = &find(death, "routing-keys", AMQP_FIELD_KIND_ARRAY)->value.array;
    CHECK(keys->num_entries == 1 && keys->entries[0].kind == AMQP_FIELD_KIND_UTF8, "not one routing key");
    check_text("the routing key", keys->entries[0].value.bytes, queue);
    int64_t age_s = (int64_t)time(NULL) - (int64_t)find(death, "time", AMQP_FIELD_KIND_TIMESTAMP)->value.u64;
    CHECK(llabs(age_s) <= CLOCKS_DIFFER_S, "it died %ld s ago", (long)age_s);
}

/* The only message of the queue of dead letters; to be destroyed. */
static amqp_message_t next_dead_letter(amqp_connection_state_t connection, const char *dead, const char *body,
                                       const char *reason, const char *queue) {
    amqp_message_t message;
    EVENTUALLY(ready(connection, dead) == 1);
    CHECK(get(connection, dead, &message, NULL), "there is no dead letter");
    check_text("the dead letter", message.body, body);
    CHECK(deaths(&message)->num_entries == 1, "it died %d times", deaths(&message)->num_entries);
    check_death(death_at(&message, 0), reason, queue);
    const amqp_table_t *headers = &message.properties.headers;
    check_text_in(headers, "x-first-death-reason", reason);
    check_text_in(headers, "x-first-death-queue", queue);
    check_text_in(headers, "x-first-death-exchange", PUBLISHED_TO);
    return message;
}

static void message_expires(amqp_connection_state_t connection, const char *queue, const char *dead) {
    amqp_basic_properties_t properties = with_expiration("100");
    publish(connection, PUBLISHED_TO, queue, &properties, "to expire");
    amqp_message_t message = next_dead_letter(connection, dead, "to expire", "expired", queue);
    check_text_in(death_at(&message, 0), "original-expiration", "100");
    CHECK(!(message.properties._flags & AMQP_BASIC_EXPIRATION_FLAG), "the dead letter has an expiration");
    amqp_destroy_message(&message);
}

static void message_is_rejected(amqp_connection_state_t connection, const char *queue, const char *dead) {
    amqp_message_t message;
    uint64_t tag;
    publish(connection, PUBLISHED_TO, queue, NULL, "to be rejected");
    CHECK(get(connection, queue, &message, &tag), "the queue is empty");
    amqp_destroy_message(&message);
    check_status(amqp_basic_reject(connection, CHANNEL, tag, false), "basic.reject");
    message = next_dead_letter(connection, dead, "to be rejected", "rejected", queue);
    amqp_destroy_message(&message);
}

static void message_is_pushed_out(amqp_connection_state_t connection, const char *queue, const char *dead) {
    publish(connection, PUBLISHED_TO, queue, NULL, "to be pushed out");
    publish(connection, PUBLISHED_TO, queue, NULL, "to push");
    amqp_message_t message = next_dead_letter(connection, dead, "to be pushed out", "maxlen", queue);
    amqp_destroy_message(&message);
}

static void every_reason(amqp_connection_state_t connection) {
    const char *exchange = unique();
    amqp_exchange_declare(connection, CHANNEL, amqp_cstring_bytes(exchange), amqp_cstring_bytes("direct"), false,
                          false, false, false, amqp_empty_table);
    check_last(connection, "exchange.declare");
    const char *dead = declare_queue(connection, NULL, 0, NULL);
    bind_queue(connection, dead, exchange, DEAD_LETTERS);

    amqp_table_entry_t arguments[] = {
        text_entry("x-dead-letter-exchange", exchange),
        text_entry("x-dead-letter-routing-key", DEAD_LETTERS),
        number_entry("x-max-length", 1),
    };
    const char *queue = declare_queue(connection, unique(), 2, arguments);
    const char *short_queue = declare_queue(connection, unique(), 3, arguments);
    bind_queue(connection, queue, PUBLISHED_TO, queue);
    bind_queue(connection, short_queue, PUBLISHED_TO, short_queue);
    message_expires(connection, queue, dead);
    message_is_rejected(connection, queue, dead);
    message_is_pushed_out(connection, short_queue, dead);
    amqp_exchange_delete(connection, CHANNEL, amqp_cstring_bytes(exchange), false);
    check_last(connection, "exchange.delete");
}

static void check_retried(const amqp_message_t *message, const char *reason, const char *queue) {
    for (int i = 0; i < deaths(message)->num_entries; i++) {
        const amqp_table_t *death = death_at(message, i);
        if (is_text(find(death, "reason", AMQP_FIELD_KIND_UTF8)->value.bytes, reason)) {
            int64_t count = find(death, "count", AMQP_FIELD_KIND_I64)->value.i64;
            check_text_in(death, "queue", queue);
            CHECK(count == 2, "%s: count is %ld", reason, (long)count);
            return;
        }
    }
    fail("it was never %s", reason);
}

/* What is rejected from the work queue comes back by the wait queue. */
static void retry(amqp_connection_state_t connection) {
    const char *work = unique(), *wait = unique();
    amqp_table_entry_t to_wait[] = {
        text_entry("x-dead-letter-exchange", DEFAULT_EXCHANGE),
        text_entry("x-dead-letter-routing-key", wait),
    };
    amqp_table_entry_t back[] = {
        text_entry("x-dead-letter-exchange", DEFAULT_EXCHANGE),
        text_entry("x-dead-letter-routing-key", work),
        number_entry("x-message-ttl", 100),
    };
    declare_queue(connection, work, 2, to_wait);
    declare_queue(connection, wait, 3, back);
    consume(connection, work, false);
    publish(connection, DEFAULT_EXCHANGE, work, NULL, "difficult");
    amqp_envelope_t envelope;
    for (int i = 0; i < 2; i++) {
        next_delivery(connection, &envelope);
        check_status(amqp_basic_reject(connection, CHANNEL, envelope.delivery_tag, false), "basic.reject");
        amqp_destroy_envelope(&envelope);
    }
    next_delivery(connection, &envelope);
    CHECK(deaths(&envelope.message)->num_entries == 2, "it has %d deaths", deaths(&envelope.message)->num_entries);
    check_retried(&envelope.message, "rejected", work);
    check_retried(&envelope.message, "expired", wait);
    acknowledge(connection, envelope.delivery_tag, false);
    amqp_destroy_envelope(&envelope);
}

void dead_letter(void) {
    amqp_connection_state_t connection = connect_to_broker();
    every_reason(connection);
    retry(connection);
    disconnect(connection);
}
