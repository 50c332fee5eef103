/* Mends two races of a consumer that closes while it joins its group (librdkafka 2.12.1).
 *
 * An answer to SyncGroup that came after the group's end made the member join again, which read the coordinator that was gone: the
 * process ended with SIGSEGV. And a request of the application that came after the group's end was dropped without an answer: the
 * thread that made it waited for ever.
 *
 * The linker puts __wrap_x where librdkafka calls x, and x where __real_x is called (wrapped.txt). Compiled with librdkafka's own headers,
 * so that the layout is that of the version which is built. */

/* The headers of OpenSSL and zlib may not be installed; no structure that is read here depends on them. */
#include "../config.h"
#undef WITH_SSL
#define WITH_SSL 0
#undef WITH_ZLIB
#define WITH_ZLIB 0

#include "rdkafka_int.h"
#include "rdkafka_cgrp.h"
#include "rdkafka_op.h"
#include "rdkafka_request.h"

void __real_rd_kafka_op_destroy(rd_kafka_op_t *op);
void __real_rd_kafka_SyncGroupRequest(
    rd_kafka_broker_t *broker, const rd_kafkap_str_t *group_id, int32_t generation_id, const rd_kafkap_str_t *member_id,
    const rd_kafkap_str_t *instance_id, const rd_kafka_group_member_t *assignments, int assignments_total, rd_kafka_replyq_t replies,
    rd_kafka_resp_cb_t *on_response, void *group);

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
