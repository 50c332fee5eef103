/* Patch 0018: a producer tells which partitions have messages without an answer.
 *
 * Version: librdkafka 2.12.1
 * Reads: rd_kafka_toppar_s.rktp_msgq, rd_kafka_toppar_s.rktp_xmit_msgq, rd_kafka_toppar_s.rktp_msgs_inflight
 * Systems: all
 * Upstream: not reported
 * Test: tests/scenarios/test_blocked_outputs.py
 *
 * librdkafka tells this in its statistics only, which are a text of all clients, topics and brokers, made again and again whether somebody
 * looks at it or not. */

#include "librdkafka.h"

/* Called under locks of the client; it calls nothing of librdkafka. */
typedef void tell_t(void *opaque, const char *topic, int32_t partition, int32_t leader, int64_t waiting);

static void tell_of(const rd_kafka_topic_t *topic, rd_kafka_toppar_t *partition, tell_t *tell, void *opaque) {
    rd_kafka_toppar_lock(partition);
    int64_t waiting = rd_kafka_msgq_len(&partition->rktp_msgq) + rd_kafka_msgq_len(&partition->rktp_xmit_msgq) +
                      rd_atomic32_get(&partition->rktp_msgs_inflight);
    int32_t leader = partition->rktp_leader_id;
    rd_kafka_toppar_unlock(partition);
    if (waiting > 0) tell(opaque, topic->rkt_topic->str, partition->rktp_partition, leader, waiting);
}

/* Tells of each partition that has messages without an answer, and of those whose partition is not known yet (-1). Does not wait. */
void awoke_unanswered(rd_kafka_t *client, tell_t *tell, void *opaque) {
    rd_kafka_topic_t *topic;
    rd_kafka_rdlock(client);
    TAILQ_FOREACH(topic, &client->rk_topics, rkt_link) {
        rd_kafka_topic_rdlock(topic);
        for (int32_t number = 0; number < topic->rkt_partition_cnt; number++) tell_of(topic, topic->rkt_p[number], tell, opaque);
        if (topic->rkt_ua) tell_of(topic, topic->rkt_ua, tell, opaque);
        rd_kafka_topic_rdunlock(topic);
    }
    rd_kafka_rdunlock(client);
}
