/* Patch 0005: the error of a DescribeAcls response reaches the caller.
 *
 * Version: librdkafka 2.12.1
 * Wraps: rd_kafka_DescribeAclsRequest
 * Systems: Linux
 * Upstream: not reported
 * Test: tests/scenarios/test_admin_acls.py
 *
 * The error was read and dropped: a client without the permission, and brokers without an authorizer, seemed to have no ACLs. */

#include "librdkafka.h"

WRAPS(rd_kafka_DescribeAclsRequest);

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
