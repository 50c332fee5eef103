/* Patch 0007: a call on a consumer whose group has ended gets an answer.
 *
 * Version: librdkafka 2.12.1
 * Wraps: rd_kafka_op_destroy
 * Systems: Linux
 * Upstream: issue 4884 and pull request 4883, open
 * Test: crates/kafka/src/librdkafka/consumer.rs
 *
 * Such a request was dropped without an answer: the thread that made it waited for ever. */

#include "librdkafka.h"

WRAPS(rd_kafka_op_destroy);

static int is_request_of_the_application(rd_kafka_op_type_t type) {
    switch (type & ~RD_KAFKA_OP_FLAGMASK) {
    case RD_KAFKA_OP_ASSIGN:
    case RD_KAFKA_OP_SUBSCRIBE:
    case RD_KAFKA_OP_GET_ASSIGNMENT:
    case RD_KAFKA_OP_GET_SUBSCRIPTION:
    case RD_KAFKA_OP_GET_REBALANCE_PROTOCOL: return 1;
    default: return 0;
    }
}

/* Answers a request that would be dropped: its thread waits without a time-out. An answered one has no reply queue any more. */
void __wrap_rd_kafka_op_destroy(rd_kafka_op_t *op) {
    if (op->rko_replyq.q && is_request_of_the_application(op->rko_type)) {
        rd_kafka_op_reply(op, RD_KAFKA_RESP_ERR__DESTROY);
    } else {
        __real_rd_kafka_op_destroy(op);
    }
}
