/* Sets the wall clock of the broker (LD_PRELOAD) by CLOCK_OFFSET_S seconds; other clocks go on as they do. While the file
 * CLOCK_STEP_FILE exists, the clock is another hour ahead. */
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
        const char *step = getenv("CLOCK_STEP_FILE");
        now->tv_sec += step && access(step, F_OK) == 0 ? 3600 : 0;
    }
    return result;
}
