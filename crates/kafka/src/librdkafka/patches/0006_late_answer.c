/* Patch 0006: a SyncGroup answer that comes after the group's end is dropped.
 *
 * Version: librdkafka 2.12.1
 * Wraps: rd_kafka_SyncGroupRequest
 * Systems: Linux
 * Upstream: not reported
 * Test: none, because the race was seen on a busy machine only: tests/scenarios/test_stop_while_joining.py
 *
 * The answer made the member join again, which read the coordinator that was gone: the process ended with SIGSEGV. */

#include "librdkafka.h"

WRAPS(rd_kafka_SyncGroupRequest);

/* librdkafka's own callback: one function, which each member passes. */
static rd_kafka_resp_cb_t *on_sync_response;

/* Runs on librdkafka's main thread, which also ends the group. */
static void on_sync_response_unless_ended(
    rd_kafka_t *client, rd_kafka_broker_t *broker, rd_kafka_resp_err_t error, rd_kafka_buf_t *response, rd_kafka_buf_t *request,
    void *group) {
    if (!rd_atomic32_get(&((rd_kafka_cgrp_t *)group)->rkcg_terminated)) {
        on_sync_response(client, broker, error, response, request, group);
    }
}

void __wrap_rd_kafka_SyncGroupRequest(
    rd_kafka_broker_t *broker, const rd_kafkap_str_t *group_id, int32_t generation_id, const rd_kafkap_str_t *member_id,
    const rd_kafkap_str_t *instance_id, const rd_kafka_group_member_t *assignments, int assignments_total, rd_kafka_replyq_t replies,
    rd_kafka_resp_cb_t *on_response, void *group) {
    __atomic_store_n(&on_sync_response, on_response, __ATOMIC_RELEASE);
    __real_rd_kafka_SyncGroupRequest(
        broker, group_id, generation_id, member_id, instance_id, assignments, assignments_total, replies, on_sync_response_unless_ended,
        group);
}
