/* Mends requests of administration (librdkafka 2.12.1).
 *
 * A request to a group's coordinator that ended, by its time-out, just before the coordinator was found gave its reference to the call back
 * twice: the process ended with an assertion (librdkafka #4605).
 *
 * A question for a coordinator was asked three times, within half a second, and then never again: while Kafka made the topic of the
 * committed offsets, or elected another leader, the request that waited for the coordinator ended by its time-out.
 *
 * A broker that does not know DeleteGroups or OffsetDelete made librdkafka give its reference to the queue of
 * replies back twice: closing the client ended the process with an assertion. And the error of a DescribeAcls response was dropped:
 * a client without the permission, and brokers without an authorizer, seemed to have no ACLs.
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
#include "rdkafka_broker.h"
#include "rdkafka_buf.h"
#include "rdkafka_coord.h"
#include "rdkafka_request.h"

typedef rd_kafka_resp_err_t request_t(
    rd_kafka_broker_t *broker, const rd_list_t *wanted, rd_kafka_AdminOptions_t *options, char *reason, size_t reason_size,
    rd_kafka_replyq_t replies, rd_kafka_resp_cb_t *on_response, void *call);

request_t __real_rd_kafka_DeleteGroupsRequest;
request_t __real_rd_kafka_OffsetDeleteRequest;
request_t __real_rd_kafka_DescribeAclsRequest;

/* The caller gives the reference to the replies back if the request is refused. */
static int is_unknown(rd_kafka_broker_t *broker, int16_t request, char *reason, size_t reason_size) {
    if (rd_kafka_broker_ApiVersion_supported(broker, request, 0, 0, NULL) != -1) {
        return 0;
    }
    rd_snprintf(reason, reason_size, "%s is not supported by the broker", rd_kafka_ApiKey2str(request));
    return 1;
}

rd_kafka_resp_err_t __wrap_rd_kafka_DeleteGroupsRequest(
    rd_kafka_broker_t *broker, const rd_list_t *wanted, rd_kafka_AdminOptions_t *options, char *reason, size_t reason_size,
    rd_kafka_replyq_t replies, rd_kafka_resp_cb_t *on_response, void *call) {
    if (is_unknown(broker, RD_KAFKAP_DeleteGroups, reason, reason_size)) {
        return RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE;
    }
    return __real_rd_kafka_DeleteGroupsRequest(broker, wanted, options, reason, reason_size, replies, on_response, call);
}

rd_kafka_resp_err_t __wrap_rd_kafka_OffsetDeleteRequest(
    rd_kafka_broker_t *broker, const rd_list_t *wanted, rd_kafka_AdminOptions_t *options, char *reason, size_t reason_size,
    rd_kafka_replyq_t replies, rd_kafka_resp_cb_t *on_response, void *call) {
    if (is_unknown(broker, RD_KAFKAP_OffsetDelete, reason, reason_size)) {
        return RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE;
    }
    return __real_rd_kafka_OffsetDeleteRequest(broker, wanted, options, reason, reason_size, replies, on_response, call);
}

/* librdkafka's own callback: one function, which each call passes. */
static rd_kafka_resp_cb_t *on_acls;

/* The error's code follows the throttle time (4 bytes) of a response. The reader's place is left where it is. */
static void on_acls_or_error(
    rd_kafka_t *client, rd_kafka_broker_t *broker, rd_kafka_resp_err_t error, rd_kafka_buf_t *response, rd_kafka_buf_t *request,
    void *call) {
    unsigned char start[6];
    if (!error && response) {
        rd_slice_t reader = response->rkbuf_reader;
        if (rd_slice_read(&reader, start, sizeof(start)) == sizeof(start)) {
            error = (int16_t)(start[4] << 8 | start[5]);
        }
    }
    on_acls(client, broker, error, response, request, call);
}

rd_kafka_resp_err_t __wrap_rd_kafka_DescribeAclsRequest(
    rd_kafka_broker_t *broker, const rd_list_t *wanted, rd_kafka_AdminOptions_t *options, char *reason, size_t reason_size,
    rd_kafka_replyq_t replies, rd_kafka_resp_cb_t *on_response, void *call) {
    __atomic_store_n(&on_acls, on_response, __ATOMIC_RELEASE);
    return __real_rd_kafka_DescribeAclsRequest(broker, wanted, options, reason, reason_size, replies, on_acls_or_error, call);
}

void __real_rd_kafka_coord_req(
    rd_kafka_t *client, rd_kafka_coordtype_t kind, const char *key, rd_kafka_send_req_cb_t *send, rd_kafka_op_t *op, int delay_ms,
    int timeout_ms, rd_kafka_replyq_t replies, rd_kafka_resp_cb_t *on_response, void *call);

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

rd_kafka_resp_err_t __real_rd_kafka_FindCoordinatorRequest(
    rd_kafka_broker_t *broker, rd_kafka_coordtype_t kind, const char *key, rd_kafka_replyq_t replies, rd_kafka_resp_cb_t *on_response,
    void *wanted);

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
