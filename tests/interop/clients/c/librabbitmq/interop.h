/* What the scenarios share; ../../../README.md says what each of them does.
 *
 * A scenario runs in a process of its own: what does not hold ends it, with all of its connections.
 */
#ifndef INTEROP_H
#define INTEROP_H

#include <amqp.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define CHANNEL 1
#define DEADLINE_S 60
#define POLL_MS 10
#define DEFAULT_EXCHANGE ""

/* The scenarios. */
void connect_scenario(void);
void tls(void);
void large(void);
void confirms(void);
void transactions(void);
void prefetch(void);
void priorities(void);
void rpc(void);
void cancel(void);
void queue_ttl(void);
void message_ttl(void);
void dead_letter(void);
void restart(void);
void errors(void);

/* checks.c: what must hold. */
/* Which scenario this process runs. */
extern const char *scenario_name;
/* Says that the scenario failed, and why, and ends its process. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
int64_t now_ms(void);
void sleep_ms(long duration_ms);
bool is_text(amqp_bytes_t bytes, const char *text);
/* The value of that name and kind in a table. */
const amqp_field_value_t *find(const amqp_table_t *table, const char *name, amqp_field_value_kind_t kind);
void check_text(const char *what, amqp_bytes_t bytes, const char *expected);
void check_text_in(const amqp_table_t *table, const char *name, const char *expected);
void check_reply(amqp_rpc_reply_t reply, const char *what);
/* How the call before went. */
void check_last(amqp_connection_state_t connection, const char *what);
void check_status(int status, const char *what);

#define CHECK(holds, ...) \
    do { \
        if (!(holds)) fail(__VA_ARGS__); \
    } while (0)

/* Waits until it holds. */
#define EVENTUALLY(holds) \
    do { \
        int64_t deadline_ms = now_ms() + DEADLINE_S * 1000; \
        while (!(holds)) { \
            CHECK(now_ms() < deadline_ms, "not within %d s: %s", DEADLINE_S, #holds); \
            sleep_ms(POLL_MS); \
        } \
    } while (0)

/* broker.c: connections, and what is done with them again and again. Connections have the channel CHANNEL. */
const char *setting(const char *name);
/* A connection over this socket, which belongs to it; how the login went is in `reply`. */
void open_and_login(amqp_connection_state_t connection, amqp_socket_t *socket, const char *port, const char *vhost,
                    const char *password, amqp_rpc_reply_t *reply);
void open_channel(amqp_connection_state_t connection, amqp_channel_t channel);
amqp_connection_state_t connect_to_broker(void);
void disconnect(amqp_connection_state_t connection);

/* A name that nobody else uses; never freed. */
const char *unique(void);
amqp_table_entry_t text_entry(const char *name, const char *text);
amqp_table_entry_t number_entry(const char *name, int32_t number);
/* An exclusive queue; without a name, the broker makes one. */
const char *declare_queue(amqp_connection_state_t connection, const char *name, int count,
                          amqp_table_entry_t *arguments);
void declare_durable_queue(amqp_connection_state_t connection, const char *name);
void bind_queue(amqp_connection_state_t connection, const char *queue, const char *exchange, const char *key);
void delete_queue(amqp_connection_state_t connection, amqp_channel_t channel, const char *queue);
/* How many messages are ready in a queue. */
unsigned ready(amqp_connection_state_t connection, const char *queue);

void publish_bytes(amqp_connection_state_t connection, const char *exchange, const char *key, bool mandatory,
                   const amqp_basic_properties_t *properties, amqp_bytes_t body);
void publish(amqp_connection_state_t connection, const char *exchange, const char *key,
             const amqp_basic_properties_t *properties, const char *body);
amqp_basic_properties_t with_expiration(const char *expiration);
amqp_basic_properties_t persistent(void);

/* basic.get: false when the queue is empty. Without a place for its tag, the message is acknowledged by being got. */
bool get(amqp_connection_state_t connection, const char *queue, amqp_message_t *message, uint64_t *tag);
void check_next(amqp_connection_state_t connection, const char *queue, const char *body);
void check_empty(amqp_connection_state_t connection, const char *queue);

void consume(amqp_connection_state_t connection, const char *queue, bool no_ack);
/* The next delivery within the deadline. */
void next_delivery(amqp_connection_state_t connection, amqp_envelope_t *envelope);
/* The next delivery has this body; its tag. */
uint64_t expect_delivery(amqp_connection_state_t connection, const char *body, bool redelivered);
void acknowledge(amqp_connection_state_t connection, uint64_t tag, bool multiple);
/* The next method that the broker sends by itself: confirms, returns, cancellations, the end of a channel. */
amqp_method_t next_method(amqp_connection_state_t connection);
void select_confirms(amqp_connection_state_t connection);
/* Each of the `count` messages that were published since confirm.select is confirmed. */
void wait_for_confirms(amqp_connection_state_t connection, unsigned count);

#endif
