/* Sets the wall clock of the broker (LD_PRELOAD) by CLOCK_OFFSET_S seconds; other clocks go on as they do. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && clock == CLOCK_REALTIME) {
        const char *offset = getenv("CLOCK_OFFSET_S");
        now->tv_sec += offset ? atoll(offset) : 0;
    }
    return result;
}
