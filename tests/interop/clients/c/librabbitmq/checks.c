/* What must hold, and how a scenario says that it does not. */
#include "interop.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *scenario_name = "";

void fail(const char *format, ...) {
    va_list arguments;
    printf("failed %s: ", scenario_name);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    exit(EXIT_FAILURE);
}

int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void sleep_ms(long duration_ms) {
    struct timespec duration = {duration_ms / 1000, duration_ms % 1000 * 1000000};
    nanosleep(&duration, NULL);
}

bool is_text(amqp_bytes_t bytes, const char *text) {
    return bytes.len == strlen(text) && memcmp(bytes.bytes, text, bytes.len) == 0;
}

void check_text(const char *what, amqp_bytes_t bytes, const char *expected) {
    CHECK(is_text(bytes, expected), "%s: expected %s, got %.*s", what, expected, (int)bytes.len, (char *)bytes.bytes);
}

const amqp_field_value_t *find(const amqp_table_t *table, const char *name, amqp_field_value_kind_t kind) {
    for (int i = 0; i < table->num_entries; i++) {
        const amqp_field_value_t *value = &table->entries[i].value;
        if (is_text(table->entries[i].key, name)) {
            CHECK(value->kind == kind, "%s is of kind %c, not %c", name, value->kind, kind);
            return value;
        }
    }
    fail("there is no %s", name);
}

void check_text_in(const amqp_table_t *table, const char *name, const char *expected) {
    check_text(name, find(table, name, AMQP_FIELD_KIND_UTF8)->value.bytes, expected);
}

void check_status(int status, const char *what) {
    CHECK(status == AMQP_STATUS_OK, "%s: %s", what, amqp_error_string2(status));
}

void check_reply(amqp_rpc_reply_t reply, const char *what) {
    switch (reply.reply_type) {
    case AMQP_RESPONSE_NORMAL:
        return;
    case AMQP_RESPONSE_LIBRARY_EXCEPTION:
        check_status(reply.library_error, what);
        break;
    case AMQP_RESPONSE_SERVER_EXCEPTION:
        if (reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD) {
            amqp_channel_close_t *close = reply.reply.decoded;
            fail("%s: %d %.*s", what, close->reply_code, (int)close->reply_text.len, (char *)close->reply_text.bytes);
        }
        if (reply.reply.id == AMQP_CONNECTION_CLOSE_METHOD) {
            amqp_connection_close_t *close = reply.reply.decoded;
            fail("%s: %d %.*s", what, close->reply_code, (int)close->reply_text.len, (char *)close->reply_text.bytes);
        }
        break;
    case AMQP_RESPONSE_NONE:
        break;
    }
    fail("%s: no answer", what);
}

void check_last(amqp_connection_state_t connection, const char *what) {
    check_reply(amqp_get_rpc_reply(connection), what);
}
