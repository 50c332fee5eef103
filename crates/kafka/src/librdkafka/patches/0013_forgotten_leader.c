/* Patch 0013: the leaders of a re-created topic are learned.
 *
 * Version: librdkafka 2.12.1
 * Calls: rd_kafka_topic_partition_ensure_toppar, rd_kafka_toppar_forget_leader
 * Systems: all
 * Upstream: not reported (KAFKA-12257 is the same in Java's clients)
 * Test: tests/scenarios/test_topic_recreated.py
 *
 * librdkafka ignores a partition's leader whose epoch is below the one that it knows. A topic that is made again begins at epoch 0, so that
 * where the leader of the old topic had changed, the leaders of the new one are never learnt, and nothing is fetched. Java's clients
 * compare the topic's id. Here librdkafka is told to forget what it knew. */

#include "librdkafka.h"

/* Forgets leader and epoch of a list's entry, if the partition and a leader are known, until metadata tells of them again. The list holds
 * the partition from then on. Takes locks of the handle and the partition. */
void awoke_forget_leader(rd_kafka_t *client, rd_kafka_topic_partition_t *entry) {
    rd_kafka_toppar_t *partition = rd_kafka_topic_partition_ensure_toppar(client, entry, rd_false);
    if (partition) rd_kafka_toppar_forget_leader(partition);
}
