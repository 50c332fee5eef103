/* Patch 0004: an admin request that the broker does not know fails cleanly.
 *
 * Version: librdkafka 2.12.1
 * Wraps: rd_kafka_DeleteGroupsRequest, rd_kafka_OffsetDeleteRequest
 * Systems: Linux
 * Upstream: issue 3663, open
 * Test: crates/engine/tests/round_trip.rs
 *
 * A broker that does not know DeleteGroups or OffsetDelete made librdkafka give its reference to the queue of
 * replies back twice: closing the client ended the process with an assertion. */

#include "librdkafka.h"

WRAPS(rd_kafka_DeleteGroupsRequest);
WRAPS(rd_kafka_OffsetDeleteRequest);

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
