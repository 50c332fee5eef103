/* Patch 0003: an admin request asks for its coordinator until it times out.
 *
 * Version: librdkafka 2.12.1
 * Wraps: rd_kafka_FindCoordinatorRequest
 * Systems: Linux
 * Upstream: pull request 3847, open
 * Test: tests/contract/test_late_coordinator.py
 *
 * A question for a coordinator was asked three times, within half a second, and then never again: while Kafka made the topic of the
 * committed offsets, or elected another leader, the request that waited for the coordinator ended by its time-out. */

#include "librdkafka.h"

WRAPS(rd_kafka_FindCoordinatorRequest);

/* librdkafka's own callback for requests that wait for a coordinator: one function, which each of them passes. */
static rd_kafka_resp_cb_t *on_coordinator;

/* The question is asked again, after at most twice the back-off, until the time of the request that waits is over. */
static void on_coordinator_or_ask_again(
    rd_kafka_t *client, rd_kafka_broker_t *broker, rd_kafka_resp_err_t error, rd_kafka_buf_t *response, rd_kafka_buf_t *question,
    void *wanted) {
    const rd_kafka_coord_req_t *waiting = wanted;
    if (question->rkbuf_retries >= question->rkbuf_max_retries && rd_timeout_remains(waiting->creq_ts_timeout) != 0) {
        question->rkbuf_retries = question->rkbuf_max_retries - 1;
    }
    on_coordinator(client, broker, error, response, question, wanted);
}

/* Questions of group members have another queue, and those of transactional producers nothing that is wanted. */
rd_kafka_resp_err_t __wrap_rd_kafka_FindCoordinatorRequest(
    rd_kafka_broker_t *broker, rd_kafka_coordtype_t kind, const char *key, rd_kafka_replyq_t replies, rd_kafka_resp_cb_t *on_response,
    void *wanted) {
    if (wanted && replies.q == broker->rkb_rk->rk_ops) {
        __atomic_store_n(&on_coordinator, on_response, __ATOMIC_RELEASE);
        on_response = on_coordinator_or_ask_again;
    }
    return __real_rd_kafka_FindCoordinatorRequest(broker, kind, key, replies, on_response, wanted);
}
