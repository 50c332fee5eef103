/* Steps the system clock of one process: a library for LD_PRELOAD, made by tests/support/clock_step.py.
 *
 * The file that CLOCK_STEP_FILE names is mapped; its first eight bytes are nanoseconds that CLOCK_REALTIME is off by.
 * A wait on a condition variable of that clock ends when the stepped time reaches its deadline, as the kernel has it: a
 * step back prolongs a wait that is under way. Condition variables of the monotonic clock are left alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000LL
#define SLICE_NS 50000000LL /* A step forward is noticed this soon. */
#define MONOTONIC_MAX 65536 /* A power of two. */

typedef int (*clock_gettime_fn)(clockid_t, struct timespec *);
typedef int (*timedwait_fn)(void *condition, void *mutex, const struct timespec *);
typedef int (*init_fn)(pthread_cond_t *, const pthread_condattr_t *);
typedef int (*destroy_fn)(pthread_cond_t *);

static const volatile int64_t *offset_file;
static clock_gettime_fn real_clock_gettime;
static timedwait_fn real_timedwait;
static timedwait_fn real_cnd_timedwait;
static init_fn real_init;
static destroy_fn real_destroy;

/* Addresses of the condition variables of the monotonic clock: an open hash table, 1 for one that has gone. */
static uintptr_t monotonic[MONOTONIC_MAX];
static pthread_mutex_t monotonic_lock = PTHREAD_MUTEX_INITIALIZER;

/* Condition variables have two versions in glibc for x86-64; dlsym may find the older one. */
static void *find(const char *name, const char *version) {
    void *found = version ? dlvsym(RTLD_NEXT, name, version) : NULL;
    return found ? found : dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void set_up(void) {
    if (real_timedwait)
        return;
    real_clock_gettime = (clock_gettime_fn)find("clock_gettime", NULL);
    real_init = (init_fn)find("pthread_cond_init", "GLIBC_2.3.2");
    real_destroy = (destroy_fn)find("pthread_cond_destroy", "GLIBC_2.3.2");
    real_cnd_timedwait = (timedwait_fn)find("cnd_timedwait", NULL);
    real_timedwait = (timedwait_fn)find("pthread_cond_timedwait", "GLIBC_2.3.2");
    const char *path = getenv("CLOCK_STEP_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *mapped = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED)
        offset_file = mapped;
}

static int64_t offset_ns(void) { return offset_file ? *offset_file : 0; }

static int64_t to_ns(const struct timespec *time) { return time->tv_sec * NS_PER_S + time->tv_nsec; }

static struct timespec from_ns(int64_t ns) {
    struct timespec time = {.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
    return time;
}

static int64_t unstepped_ns(void) {
    struct timespec now;
    set_up();
    real_clock_gettime(CLOCK_REALTIME, &now);
    return to_ns(&now);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    set_up();
    int result = real_clock_gettime(clock, time);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        *time = from_ns(to_ns(time) + offset_ns());
    return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    (void)zone;
    int64_t now_ns = unstepped_ns() + offset_ns();
    time->tv_sec = now_ns / NS_PER_S;
    time->tv_usec = now_ns % NS_PER_S / 1000;
    return 0;
}

time_t time(time_t *result) {
    time_t now = (unstepped_ns() + offset_ns()) / NS_PER_S;
    if (result)
        *result = now;
    return now;
}

int timespec_get(struct timespec *time, int base) {
    if (base != TIME_UTC)
        return 0;
    *time = from_ns(unstepped_ns() + offset_ns());
    return base;
}

static size_t place_of(uintptr_t address) { return (address >> 4) * 2654435761u & (MONOTONIC_MAX - 1); }

/* The place of an address, or that of the end of its chain. Call with the lock. */
static size_t search(uintptr_t address) {
    size_t place = place_of(address);
    for (size_t steps = 0; steps < MONOTONIC_MAX && monotonic[place] != 0 && monotonic[place] != address; steps++)
        place = (place + 1) & (MONOTONIC_MAX - 1);
    return place;
}

static void note(pthread_cond_t *condition, int is_monotonic) {
    uintptr_t address = (uintptr_t)condition;
    pthread_mutex_lock(&monotonic_lock);
    size_t place = search(address);
    if (is_monotonic && monotonic[place] == 0)
        monotonic[place] = address;
    else if (!is_monotonic && monotonic[place] == address)
        monotonic[place] = 1;
    pthread_mutex_unlock(&monotonic_lock);
}

static int is_monotonic(pthread_cond_t *condition) {
    pthread_mutex_lock(&monotonic_lock);
    int found = monotonic[search((uintptr_t)condition)] == (uintptr_t)condition;
    pthread_mutex_unlock(&monotonic_lock);
    return found;
}

int pthread_cond_init(pthread_cond_t *restrict condition, const pthread_condattr_t *restrict attributes) {
    clockid_t clock = CLOCK_REALTIME;
    set_up();
    if (attributes)
        pthread_condattr_getclock(attributes, &clock);
    note(condition, clock == CLOCK_MONOTONIC);
    return real_init(condition, attributes);
}

int pthread_cond_destroy(pthread_cond_t *condition) {
    set_up();
    note(condition, 0);
    return real_destroy(condition);
}

/* Waits until the stepped time reaches the deadline. Between two slices the caller's mutex is held: no signal is lost. */
static int wait_stepped(void *condition, void *mutex, const struct timespec *deadline, timedwait_fn wait, int timed_out) {
    for (;;) {
        int64_t now_ns = unstepped_ns();
        int64_t left_ns = to_ns(deadline) - (now_ns + offset_ns());
        struct timespec end = from_ns(now_ns + (left_ns < SLICE_NS ? left_ns : SLICE_NS));
        int result = wait(condition, mutex, &end);
        if (result != timed_out || to_ns(deadline) <= unstepped_ns() + offset_ns())
            return result;
    }
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict deadline) {
    set_up();
    if (deadline->tv_nsec < 0 || deadline->tv_nsec >= NS_PER_S || is_monotonic(condition))
        return real_timedwait(condition, mutex, deadline);
    return wait_stepped(condition, mutex, deadline, real_timedwait, ETIMEDOUT);
}

/* The C library's own, which does not call the above. It knows the system clock alone. */
int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict deadline) {
    set_up();
    return wait_stepped(condition, mutex, deadline, real_cnd_timedwait, thrd_timedout);
}
