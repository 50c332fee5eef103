/* Patch 0016: an answer to a fetch that was sent before a seek does not reset the position.
 *
 * Version: librdkafka 2.12.1
 * Wraps: rd_kafka_offset_reset
 * Systems: Linux
 * Upstream: not reported
 * Test: tests/scenarios/test_late_reset.py
 *
 * A seek has librdkafka drop the messages of earlier fetches, but not their errors. "Offset out of range" from the position before the seek
 * reset the new one to auto.offset.reset. It also ended the comparison with the leader's log that a seek with a leader epoch, or a new
 * leader, had begun: after an unclean election a member read a truncated log from its first message, and not from where the logs part. */

#include "librdkafka.h"

WRAPS(rd_kafka_offset_reset);

/* Tells whether the position that was out of range is still the one to fetch from, and no broker is asked to compare it. The partition is
 * locked. When a fetch fails in this way librdkafka clears its position, until it takes the next one over. */
static int is_there_still(const rd_kafka_toppar_t *partition) {
    return partition->rktp_offsets.fetch_pos.offset == RD_KAFKA_OFFSET_INVALID &&
           partition->rktp_op_version <= partition->rktp_fetch_version &&
           partition->rktp_fetch_state != RD_KAFKA_TOPPAR_FETCH_VALIDATE_EPOCH_WAIT;
}

/* Runs on librdkafka's main thread, after the seeks that came before the answer. */
static rd_kafka_op_res_t reset_if_there_still(rd_kafka_t *client, rd_kafka_q_t *queue, rd_kafka_op_t *operation) {
    rd_kafka_toppar_t *partition = operation->rko_rktp;
    const rd_kafka_fetch_pos_t position = operation->rko_u.offset_reset.pos;
    if (operation->rko_err == RD_KAFKA_RESP_ERR__DESTROY) return RD_KAFKA_OP_RES_HANDLED;
    rd_kafka_toppar_lock(partition);
    if (is_there_still(partition)) {
        __real_rd_kafka_offset_reset(
            partition, operation->rko_u.offset_reset.broker_id, position, operation->rko_err, "%s", operation->rko_u.offset_reset.reason);
    } else if (partition->rktp_offsets.fetch_pos.offset == RD_KAFKA_OFFSET_INVALID) {
        /* Reading goes on there if the comparison finds nothing: the next answer is the same one then. */
        partition->rktp_offsets.fetch_pos = position;
    }
    rd_kafka_toppar_unlock(partition);
    return RD_KAFKA_OP_RES_HANDLED;
}

/* A broker's thread calls it with "offset out of range", and has locked the partition. */
void __wrap_rd_kafka_offset_reset(
    rd_kafka_toppar_t *partition, int32_t broker, rd_kafka_fetch_pos_t position, rd_kafka_resp_err_t error, const char *format, ...) {
    char reason[512];
    va_list words;
    va_start(words, format);
    rd_vsnprintf(reason, sizeof(reason), format, words);
    va_end(words);
    if (error != RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE) {
        __real_rd_kafka_offset_reset(partition, broker, position, error, "%s", reason);
        return;
    }
    rd_kafka_op_t *operation = rd_kafka_op_new(RD_KAFKA_OP_OFFSET_RESET | RD_KAFKA_OP_CB);
    operation->rko_op_cb = reset_if_there_still;
    operation->rko_err = error;
    operation->rko_rktp = rd_kafka_toppar_keep(partition);
    operation->rko_u.offset_reset.broker_id = broker;
    operation->rko_u.offset_reset.pos = position;
    operation->rko_u.offset_reset.reason = rd_strdup(reason);
    rd_kafka_q_enq(partition->rktp_ops, operation);
}
