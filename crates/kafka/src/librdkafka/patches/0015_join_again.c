/* Patch 0015: a member of a stable group can join it again.
 *
 * Version: librdkafka 2.12.1
 * Writes: rd_kafka_cgrp_s.rkcg_join_state
 * Systems: all
 * Upstream: not reported (Java's clients have enforceRebalance, KIP-568)
 * Test: tests/scenarios/test_unowned.py
 *
 * A member that joins again with other partitions than its coordinator remembers has the group divide all partitions anew. librdkafka joins
 * again by itself only. */

#include "librdkafka.h"

/* Does what librdkafka's own rejoin does for a cooperative member. On librdkafka's main thread, which then joins. */
static rd_kafka_op_res_t join_again(rd_kafka_t *client, rd_kafka_q_t *queue, rd_kafka_op_t *operation) {
    rd_kafka_cgrp_t *group = client->rk_cgrp;
    if (operation->rko_err != RD_KAFKA_RESP_ERR__DESTROY && group->rkcg_group_protocol == RD_KAFKA_GROUP_PROTOCOL_CLASSIC &&
        rd_kafka_cgrp_rebalance_protocol(group) == RD_KAFKA_REBALANCE_PROTOCOL_COOPERATIVE && group->rkcg_subscription &&
        !(group->rkcg_flags & RD_KAFKA_CGRP_F_TERMINATE) && !group->rkcg_rebalance_rejoin && !group->rkcg_rebalance_incr_assignment &&
        group->rkcg_join_state == RD_KAFKA_CGRP_JOIN_STATE_STEADY) {
        rd_interval_reset(&group->rkcg_join_intvl);
        group->rkcg_join_state = RD_KAFKA_CGRP_JOIN_STATE_INIT;
    }
    return RD_KAFKA_OP_RES_HANDLED;
}

/* Has the member join its group again, unless a rebalance is under way. Does not wait. */
void awoke_join_again(rd_kafka_t *client) {
    if (client->rk_cgrp) rd_kafka_q_enq(client->rk_cgrp->rkcg_ops, rd_kafka_op_new_cb(client, RD_KAFKA_OP_WAKEUP, join_again));
}
