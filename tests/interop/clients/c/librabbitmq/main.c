/* librabbitmq, through every scenario. */
#include "interop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct { const char *name; void (*run)(void); } SCENARIOS[] = {
    {"connect", connect_scenario}, {"tls", tls}, {"large", large},
    {"confirms", confirms}, {"transactions", transactions},
    {"prefetch", prefetch}, {"priorities", priorities}, {"rpc", rpc}, {"cancel", cancel},
    {"queue-ttl", queue_ttl}, {"message-ttl", message_ttl},
    {"dead-letter", dead_letter},
    {"restart", restart},
    {"errors", errors},
};

static void run(const char *name) {
    scenario_name = name;
    for (size_t i = 0; i < sizeof SCENARIOS / sizeof *SCENARIOS; i++) {
        if (strcmp(SCENARIOS[i].name, name) == 0) {
            SCENARIOS[i].run();
            return;
        }
    }
    fail("there is no such scenario");
}

/* In a process of its own, so that nothing is left of a scenario that failed. */
static bool passes(const char *name) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        run(name);
        exit(EXIT_SUCCESS);
    }
    int status;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) printf("failed %s: killed by signal %d\n", name, WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
}

int main(int count, char **names) {
    int status = EXIT_SUCCESS;
    printf("version %s\n", amqp_version());
    for (int i = 1; i < count; i++) {
        if (passes(names[i])) {
            printf("ok %s\n", names[i]);
        } else {
            status = EXIT_FAILURE;
        }
    }
    return status;
}
