/* Makes system calls on the files of one directory fail, be slow, or do half of what they should.
 *
 * Preloaded into the broker (LD_PRELOAD). FAULTS_FOLDER is the directory, FAULTS_RULES a file that is read before every
 * call, so that a test may change it at any time. A rule is a line of six words:
 *
 *     ID CALL SKIP TIMES ACTION SUFFIX
 *
 * ID 0 to 63 names its counter; CALL is open, write, fsync (fdatasync as well) or rename; the first SKIP calls on files
 * whose names end in SUFFIX (* for any) are let through, the next TIMES are not. ACTION is an error (EIO, ...), `short`
 * (a write of half of it), `delay:MS`, or `lose`: EIO from a sync, and what was written since the last one is gone,
 * as after a disk that failed and a cache that was dropped. What was done is told in FAULTS_RULES.log.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RULES 64
#define KEPT 256
#define KEPT_BYTES_MAX (8 << 20)

struct action { int error; int is_short; int loses; int delay_ms; };
struct kept { int fd; off64_t at; size_t len; char *octets; };

static const struct { const char *name; int error; } ERRORS[] = {
    {"EIO", EIO}, {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {"EINTR", EINTR}, {"EMFILE", EMFILE}, {"EROFS", EROFS}};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long calls[RULES];
/* What was in the place of what has been written and not synced. */
static struct kept kept[KEPT];
static size_t kept_count;

#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) real = dlsym(RTLD_NEXT, #name)

static int starts_with_folder(const char *path) {
    const char *folder = getenv("FAULTS_FOLDER");
    return folder && strncmp(path, folder, strlen(folder)) == 0;
}

static int path_of(int fd, char *path, size_t len) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t count = readlink(link, path, len - 1);
    if (count < 0) return 0;
    path[count] = 0;
    return starts_with_folder(path);
}

static void tell(const char *id, const char *call, const char *path, const char *action) {
    char name[4096], line[8192];
    snprintf(name, sizeof name, "%s.log", getenv("FAULTS_RULES"));
    int len = snprintf(line, sizeof line, "%s %s %s %s\n", id, call, action, path);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd >= 0) {
        if (syscall(SYS_write, fd, line, len) != len) abort();
        syscall(SYS_close, fd);
    }
}

static int ends_with(const char *path, const char *suffix) {
    size_t len = strlen(path), end = strlen(suffix);
    return strcmp(suffix, "*") == 0 || (len >= end && strcmp(path + len - end, suffix) == 0);
}

/* What is to happen to this call; the lock is held. */
static struct action decide(const char *call, const char *path) {
    struct action action = {0};
    char text[8192];
    int fd = (int)syscall(SYS_openat, AT_FDCWD, getenv("FAULTS_RULES"), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return action;
    ssize_t count = syscall(SYS_read, fd, text, sizeof text - 1);
    syscall(SYS_close, fd);
    text[count > 0 ? count : 0] = 0;
    char *end;
    for (char *line = strtok_r(text, "\n", &end); line; line = strtok_r(NULL, "\n", &end)) {
        char id[8], name[16], what[32], suffix[256];
        long skip, times;
        if (sscanf(line, "%7s %15s %ld %ld %31s %255s", id, name, &skip, &times, what, suffix) != 6) abort();
        if (strcmp(name, call) != 0 || !ends_with(path, suffix)) continue;
        long number = calls[atoi(id) % RULES]++;
        if (number < skip || number >= skip + times) continue;
        tell(id, call, path, what);
        action.is_short |= strcmp(what, "short") == 0;
        action.loses |= strcmp(what, "lose") == 0;
        if (action.loses) action.error = EIO;
        if (strncmp(what, "delay:", 6) == 0) action.delay_ms = atoi(what + 6);
        for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++)
            if (strcmp(what, ERRORS[i].name) == 0) action.error = ERRORS[i].error;
    }
    return action;
}

static struct action action_for(const char *call, const char *path) {
    pthread_mutex_lock(&lock);
    int error = errno;
    struct action action = decide(call, path);
    errno = error;
    pthread_mutex_unlock(&lock);
    if (action.delay_ms) usleep(1000 * action.delay_ms);
    return action;
}

/* Keeps what a write is about to replace. */
static void keep(int fd, off64_t at, size_t len) {
    if (len > KEPT_BYTES_MAX) return;
    pthread_mutex_lock(&lock);
    if (kept_count < KEPT) {
        char *octets = malloc(len);
        if (!octets) abort();
        long count = syscall(SYS_pread64, fd, octets, len, at);
        kept[kept_count++] = (struct kept){fd, at, count > 0 ? (size_t)count : 0, octets};
    }
    pthread_mutex_unlock(&lock);
}

/* Forgets what was kept of a file, or puts it back, the latest first. */
static void settle(int fd, int puts_back) {
    pthread_mutex_lock(&lock);
    for (size_t i = kept_count; i-- > 0;) {
        if (kept[i].fd != fd) continue;
        if (puts_back && syscall(SYS_pwrite64, fd, kept[i].octets, kept[i].len, kept[i].at) < 0) abort();
        free(kept[i].octets);
        memmove(kept + i, kept + i + 1, (--kept_count - i) * sizeof *kept);
    }
    pthread_mutex_unlock(&lock);
}

static int refused(int error) {
    errno = error;
    return -1;
}

static int open_with(int (*real)(int, const char *, int, ...), int at, const char *path, int flags, mode_t mode) {
    if ((flags & O_CREAT) && starts_with_folder(path)) {
        struct action action = action_for("open", path);
        if (action.error) return refused(action.error);
    }
    return real(at, path, flags, mode);
}

int openat64(int at, const char *path, int flags, ...) {
    REAL(openat64);
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return open_with(real, at, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    REAL(openat64);
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return open_with(real, AT_FDCWD, path, flags, mode);
}

ssize_t pwrite64(int fd, const void *octets, size_t len, off64_t at) {
    REAL(pwrite64);
    char path[4096];
    if (path_of(fd, path, sizeof path)) {
        struct action action = action_for("write", path);
        if (action.error) return refused(action.error);
        if (action.is_short && len > 1) len /= 2;
        keep(fd, at, len);
    }
    return real(fd, octets, len, at);
}

ssize_t write(int fd, const void *octets, size_t len) {
    REAL(write);
    char path[4096];
    if (path_of(fd, path, sizeof path)) {
        struct action action = action_for("write", path);
        if (action.error) return refused(action.error);
        if (action.is_short && len > 1) len /= 2;
    }
    return real(fd, octets, len);
}

static int sync_with(int (*real)(int), int fd) {
    char path[4096];
    if (path_of(fd, path, sizeof path)) {
        struct action action = action_for("fsync", path);
        if (action.error) {
            settle(fd, action.loses);
            return refused(action.error);
        }
    }
    int result = real(fd);
    if (result == 0) settle(fd, 0);
    return result;
}

int fdatasync(int fd) {
    REAL(fdatasync);
    return sync_with(real, fd);
}

int fsync(int fd) {
    REAL(fsync);
    return sync_with(real, fd);
}

int rename(const char *from, const char *to) {
    REAL(rename);
    if (starts_with_folder(to)) {
        struct action action = action_for("rename", to);
        if (action.error) return refused(action.error);
    }
    return real(from, to);
}
