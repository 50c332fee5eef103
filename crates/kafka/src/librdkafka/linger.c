/* Ends the linger of a partition while a message in it is awaited, and that of all partitions while few messages are on their way.
 *
 * librdkafka (2.12.1) can end a linger only by a flush: of all partitions, and for as long as the flush lasts. Here the linger that its
 * broker thread reads is shortened for one partition (linger.rs has the counts), and that partition's broker is woken.
 *
 * The linker puts __wrap_x where librdkafka calls x, and x where __real_x is called (wrapped.txt). Compiled with librdkafka's own headers,
 * so that the layout is that of the version which is built. */

#include <stddef.h>

#include "../config.h"
/* The headers of OpenSSL and zlib may not be installed; no structure that is read here depends on them. */
#undef WITH_SSL
#define WITH_SSL 0
#undef WITH_ZLIB
#define WITH_ZLIB 0

#include "rdkafka_int.h"
#include "rdkafka_partition.h"
#include "rdkafka_topic.h"

/* Of linger.rs. */
int awoke_ends_linger(rd_kafka_t *rk, const rd_kafka_topic_t *topic, int32_t partition);
void awoke_note_partition(rd_kafka_t *rk, const void *message, int32_t partition);

/* librdkafka's own value for a linger during a flush. */
#define NO_LINGER_US 1

rd_bool_t __real_rd_kafka_msgq_allow_wakeup_at(
    rd_kafka_msgq_t *queue, const rd_kafka_msgq_t *sent_next, rd_ts_t *next_wakeup, rd_ts_t now, rd_ts_t linger_us,
    int32_t batch_messages, int64_t batch_bytes);
void __real_rd_kafka_toppar_enq_msg(rd_kafka_toppar_t *partition, rd_kafka_msg_t *message, rd_ts_t now);

/* Decides whether the messages of a partition are sent now. Called by a broker's thread, under the partition's lock. */
rd_bool_t __wrap_rd_kafka_msgq_allow_wakeup_at(
    rd_kafka_msgq_t *queue, const rd_kafka_msgq_t *sent_next, rd_ts_t *next_wakeup, rd_ts_t now, rd_ts_t linger_us,
    int32_t batch_messages, int64_t batch_bytes) {
    const rd_kafka_toppar_t *partition = (const rd_kafka_toppar_t *)((const char *)queue - offsetof(rd_kafka_toppar_t, rktp_msgq));
    const rd_kafka_topic_t *topic = partition->rktp_rkt;
    if (linger_us > NO_LINGER_US && awoke_ends_linger(topic->rkt_rk, topic, partition->rktp_partition)) linger_us = NO_LINGER_US;
    return __real_rd_kafka_msgq_allow_wakeup_at(queue, sent_next, next_wakeup, now, linger_us, batch_messages, batch_bytes);
}

/* Adds a message to a partition, or to those whose partition is not known yet. */
void __wrap_rd_kafka_toppar_enq_msg(rd_kafka_toppar_t *partition, rd_kafka_msg_t *message, rd_ts_t now) {
    awoke_note_partition(partition->rktp_rkt->rkt_rk, message->rkm_opaque, partition->rktp_partition);
    __real_rd_kafka_toppar_enq_msg(partition, message, now);
}

/* Wakes the thread of a partition's broker, unless it is about to look at the partition anyway. Does not block. */
void awoke_wake_partition(rd_kafka_topic_t *topic, int32_t number) {
    rd_kafka_q_t *broker = NULL;
    rd_kafka_toppar_t *partition;
    rd_kafka_topic_rdlock(topic);
    partition = rd_kafka_toppar_get(topic, number, 0);
    rd_kafka_topic_rdunlock(topic);
    if (!partition) return;
    rd_kafka_toppar_lock(partition);
    if (!partition->rktp_msgq.rkmq_wakeup.signalled && (broker = partition->rktp_msgq_wakeup_q)) {
        partition->rktp_msgq.rkmq_wakeup.signalled = rd_true;
        rd_kafka_q_keep(broker);
    }
    rd_kafka_toppar_unlock(partition);
    rd_kafka_toppar_destroy(partition);
    if (broker) {
        rd_kafka_q_yield(broker);
        rd_kafka_q_destroy(broker);
    }
}
