/* Patch 0012: the bounds of fetched messages can change while the client runs.
 *
 * Version: librdkafka 2.12.1
 * Writes: rd_kafka_conf_s.queued_min_msgs, rd_kafka_conf_s.queued_max_msg_bytes
 * Systems: all
 * Upstream: pull request 5076, open
 * Test: crates/kafka/src/librdkafka/fetch_memory.rs
 *
 * librdkafka bounds each queue of a partition by itself, so the memory grows with the partitions that a member has. It reads the bounds
 * before each fetch, but it has no function to change them. A bound for all partitions together, which the pull request adds, would
 * replace this. */

#include "librdkafka.h"

/* Says where the two numbers of a client stand. They live as long as the client; its broker threads read each with one load. */
void awoke_fetch_bounds(rd_kafka_t *client, int **messages, int64_t **bytes) {
    *messages = &client->rk_conf.queued_min_msgs;
    *bytes = &client->rk_conf.queued_max_msg_bytes;
}

/* Returns the bytes of a fetched message: its key, its value, and its headers as they were sent. */
size_t awoke_message_bytes(const rd_kafka_message_t *message) {
    int32_t headers = ((const rd_kafka_msg_t *)message)->rkm_u.consumer.binhdrs.len;
    return message->key_len + message->len + (headers > 0 ? (size_t)headers : 0);
}
