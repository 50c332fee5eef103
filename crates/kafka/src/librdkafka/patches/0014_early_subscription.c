/* Patch 0014: a subscription that changes while a member joins again waits for the join.
 *
 * Version: librdkafka 2.12.1
 * Writes: rd_kafka_q_s.rkq_serve
 * Systems: all
 * Upstream: not reported
 * Test: tests/scenarios/test_frozen_members.py
 *
 * librdkafka keeps a new subscription back while the group rebalances. A cooperative member that has lost its session and joins again does
 * not count, because it has no id yet. Where the new subscription names a topic that the member does not know, the join state is asserted:
 * the process ended with SIGABRT. The subscription is kept back in that state, too: librdkafka applies it as soon as the join is over. */

#include "librdkafka.h"

/* librdkafka's own function for the operations of a group, one for all clients. */
static rd_kafka_q_serve_cb_t *serve;

/* Tells whether the change of the subscription would reach the assertion. On librdkafka's main thread. */
static int is_too_early(rd_kafka_cgrp_t *group, rd_kafka_op_t *operation) {
    return operation->rko_type == RD_KAFKA_OP_SUBSCRIBE && operation->rko_u.subscribe.topics && group->rkcg_subscription &&
           group->rkcg_group_protocol == RD_KAFKA_GROUP_PROTOCOL_CLASSIC && !rd_kafka_fatal_error_code(group->rkcg_rk) &&
           rd_kafka_cgrp_rebalance_protocol(group) == RD_KAFKA_REBALANCE_PROTOCOL_COOPERATIVE &&
           group->rkcg_join_state != RD_KAFKA_CGRP_JOIN_STATE_INIT && group->rkcg_join_state != RD_KAFKA_CGRP_JOIN_STATE_STEADY;
}

static rd_kafka_op_res_t serve_in_time(
    rd_kafka_t *client, rd_kafka_q_t *queue, rd_kafka_op_t *operation, rd_kafka_q_cb_type_t type, void *opaque) {
    rd_kafka_cgrp_t *group = opaque;
    if (!is_too_early(group, operation)) return serve(client, queue, operation, type, opaque);
    rd_atomic64_set(&client->rk_ts_last_poll, rd_clock());
    if (group->rkcg_next_subscription) rd_kafka_topic_partition_list_destroy_free(group->rkcg_next_subscription);
    group->rkcg_next_subscription = operation->rko_u.subscribe.topics;
    group->rkcg_next_unsubscribe = rd_false;
    operation->rko_u.subscribe.topics = NULL;
    rd_kafka_op_reply(operation, RD_KAFKA_RESP_ERR_NO_ERROR);
    return RD_KAFKA_OP_RES_HANDLED;
}

/* Puts the function above before librdkafka's, of a client that has a group. Called before the client subscribes. librdkafka's threads read
 * the pointer with one load, and the two functions differ in a change of the subscription only. */
void awoke_hold_subscriptions_back(rd_kafka_t *client) {
    if (!client->rk_cgrp) return;
    __atomic_store_n(&serve, client->rk_cgrp->rkcg_ops->rkq_serve, __ATOMIC_RELEASE);
    __atomic_store_n(&client->rk_cgrp->rkcg_ops->rkq_serve, serve_in_time, __ATOMIC_RELEASE);
}
