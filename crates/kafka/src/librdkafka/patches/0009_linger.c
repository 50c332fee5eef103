/* Patch 0009: an awaited message ends the linger of its partition, and few messages do not linger at all.
 *
 * Version: librdkafka 2.12.1
 * Wraps: rd_kafka_msgq_allow_wakeup_at, rd_kafka_toppar_enq_msg
 * Systems: Linux
 * Upstream: not reported
 * Test: tests/contract/test_produce.py
 *
 * librdkafka can end a linger only by a flush: of all partitions, and for as long as the flush lasts. Beside 100,000 other messages per
 * second, a send with a wait then took 1.2 to 8 times as long as alone. Here the linger that its broker thread reads is shortened for one
 * partition (linger.rs has the counts), and that partition's broker is woken. */

#include "librdkafka.h"

#include <stddef.h>

WRAPS(rd_kafka_msgq_allow_wakeup_at);
WRAPS(rd_kafka_toppar_enq_msg);

/* Of linger.rs. */
int awoke_ends_linger(rd_kafka_t *rk, const rd_kafka_topic_t *topic, int32_t partition);
void awoke_note_partition(rd_kafka_t *rk, const void *message, int32_t partition);

/* librdkafka's own value for a linger during a flush. */
#define NO_LINGER_US 1

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
