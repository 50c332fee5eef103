/* Patch 0001: a client without a group survives a moved coordinator.
 *
 * Version: librdkafka 2.12.1
 * Wraps: rd_kafka_cgrp_op
 * Systems: Linux
 * Upstream: issue 5040 and pull request 5318, open
 * Test: tests/contract/test_moved_coordinator.py
 *
 * An OffsetFetch response may say that the group's coordinator has moved. librdkafka then asks the client's own group for the new one. An
 * admin client has no group, and the process ended with SIGSEGV. */

#include "librdkafka.h"

WRAPS(rd_kafka_cgrp_op);

/* Without a group, librdkafka's own retry finds the new coordinator. */
void __wrap_rd_kafka_cgrp_op(
    rd_kafka_cgrp_t *group, rd_kafka_toppar_t *partition, rd_kafka_replyq_t replies, rd_kafka_op_type_t type, rd_kafka_resp_err_t error) {
    if (group) __real_rd_kafka_cgrp_op(group, partition, replies, type, error);
}
