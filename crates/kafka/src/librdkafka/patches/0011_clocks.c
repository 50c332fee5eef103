/* Patch 0011: waits use the monotonic clock, which cannot be set.
 *
 * Version: librdkafka 2.12.1
 * Replaces: cnd_init, cnd_timedwait
 * Systems: Linux
 * Upstream: issue 2145, open
 * Test: tests/scenarios/test_clock_step.py
 *
 * librdkafka measures on the monotonic clock, but waits with C11's cnd_timedwait, whose deadline is of the system's clock. If that clock
 * were set back by an hour, each present wait would take an hour longer: no heartbeat, no commit, no end. Here the deadline is converted to
 * the monotonic clock before the wait begins. The functions are the C library's, and hidden, so that the rest of the process keeps its
 * own. */

#include <errno.h>
#include <pthread.h>
#include <threads.h>
#include <time.h>

#define OURS __attribute__((visibility("hidden")))

/* The C library's cnd_init and cnd_timedwait make the same calls on the same types. */
_Static_assert(sizeof(cnd_t) >= sizeof(pthread_cond_t), "cnd_t holds a pthread_cond_t");
_Static_assert(sizeof(mtx_t) >= sizeof(pthread_mutex_t), "mtx_t holds a pthread_mutex_t");

OURS int cnd_init(cnd_t *condition) {
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0) return thrd_error;
    int failed = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (!failed) failed = pthread_cond_init((pthread_cond_t *)condition, &attributes);
    pthread_condattr_destroy(&attributes);
    return failed ? thrd_error : thrd_success;
}

/* The deadline was computed from the system's clock a moment ago. */
OURS int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *deadline) {
    struct timespec wall, until;
    clock_gettime(CLOCK_REALTIME, &wall);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += deadline->tv_sec - wall.tv_sec;
    until.tv_nsec += deadline->tv_nsec - wall.tv_nsec;
    if (until.tv_nsec < 0) { until.tv_nsec += 1000000000; until.tv_sec -= 1; }
    if (until.tv_nsec >= 1000000000) { until.tv_nsec -= 1000000000; until.tv_sec += 1; }
    if (until.tv_sec < 0) return thrd_timedout;
    switch (pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, &until)) {
    case 0: return thrd_success;
    case ETIMEDOUT: return thrd_timedout;
    default: return thrd_error;
    }
}
