/* Patch 0002: an admin call that has ended is not used again.
 *
 * Version: librdkafka 2.12.1
 * Wraps: rd_kafka_coord_req
 * Systems: Linux
 * Upstream: issue 4605 and pull request 5397, open
 * Test: tests/contract/test_lost_coordinator.py
 *
 * A request to a group's coordinator that ended, by its time-out, just before the coordinator was found gave its reference to the call back
 * twice: the process ended with an assertion. */

#include "librdkafka.h"

WRAPS(rd_kafka_coord_req);

/* librdkafka's own function for requests of administration: one, which each call passes. */
static rd_kafka_send_req_cb_t *send_request;

/* A call that has ended has been answered: failing the request, too, would use the call again, which may be freed. */
static rd_kafka_resp_err_t send_unless_ended(
    rd_kafka_broker_t *broker, rd_kafka_op_t *op, rd_kafka_replyq_t replies, rd_kafka_resp_cb_t *on_response, void *call) {
    rd_kafka_resp_err_t error = send_request(broker, op, replies, on_response, call);
    if (error != RD_KAFKA_RESP_ERR__DESTROY) {
        return error;
    }
    rd_kafka_replyq_destroy(&replies);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* Those of transactions have an op, and stay as they are. */
void __wrap_rd_kafka_coord_req(
    rd_kafka_t *client, rd_kafka_coordtype_t kind, const char *key, rd_kafka_send_req_cb_t *send, rd_kafka_op_t *op, int delay_ms,
    int timeout_ms, rd_kafka_replyq_t replies, rd_kafka_resp_cb_t *on_response, void *call) {
    if (!op) {
        __atomic_store_n(&send_request, send, __ATOMIC_RELEASE);
        send = send_unless_ended;
    }
    __real_rd_kafka_coord_req(client, kind, key, send, op, delay_ms, timeout_ms, replies, on_response, call);
}
