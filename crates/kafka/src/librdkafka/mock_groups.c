/* Lets groups of librdkafka's mock cluster rebalance as soon as all members have joined, as Kafka's brokers do.
 *
 * The mock cluster (librdkafka 2.12.1) elects a leader when a timer fires: one second before the session ends, for every rebalance but
 * the first. A group that all members left waits as well, so that the next member got its partitions after 44 s by default.
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
#include "rdkafka_mock_int.h"

rd_kafka_resp_err_t __real_rd_kafka_mock_cgrp_classic_member_add(
    rd_kafka_mock_cgrp_classic_t *group, rd_kafka_mock_connection_t *connection, rd_kafka_buf_t *response,
    const rd_kafkap_str_t *member_id, const rd_kafkap_str_t *protocol_type, const rd_kafkap_str_t *instance_id,
    rd_kafka_mock_cgrp_classic_proto_t *protocols, int protocols_total, int session_timeout_ms);

/* Only a member that waits for the end of a join has a response: the responses of another state are sent before JOINING begins. */
static int have_all_joined(const rd_kafka_mock_cgrp_classic_t *group) {
    const rd_kafka_mock_cgrp_classic_member_t *member;
    if (group->state != RD_KAFKA_MOCK_CGRP_STATE_JOINING) return 0;
    TAILQ_FOREACH(member, &group->members, link) {
        if (!member->resp) return 0;
    }
    return 1;
}

/* Adds a member to a group, or notes that it joins again. Called on the mock cluster's thread, which also runs the timer. */
rd_kafka_resp_err_t __wrap_rd_kafka_mock_cgrp_classic_member_add(
    rd_kafka_mock_cgrp_classic_t *group, rd_kafka_mock_connection_t *connection, rd_kafka_buf_t *response,
    const rd_kafkap_str_t *member_id, const rd_kafkap_str_t *protocol_type, const rd_kafkap_str_t *instance_id,
    rd_kafka_mock_cgrp_classic_proto_t *protocols, int protocols_total, int session_timeout_ms) {
    rd_kafka_resp_err_t error = __real_rd_kafka_mock_cgrp_classic_member_add(
        group, connection, response, member_id, protocol_type, instance_id, protocols, protocols_total, session_timeout_ms);
    if (!error && have_all_joined(group)) {
        rd_ts_t delay_us = group->cluster->defaults.group_initial_rebalance_delay_ms * 1000;
        rd_kafka_timer_override_once(&group->cluster->timers, &group->rebalance_tmr, delay_us);
    }
    return error;
}
