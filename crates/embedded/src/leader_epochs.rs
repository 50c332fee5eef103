//! `OffsetForLeaderEpoch`: the end of a leader's epoch, by which a consumer finds out whether its position was cut off
//! (KIP-320).

use kafka_protocol::ResponseError;
use kafka_protocol::messages::offset_for_leader_epoch_request::OffsetForLeaderPartition;
use kafka_protocol::messages::offset_for_leader_epoch_response::{EpochEndOffset, OffsetForLeaderTopicResult};
use kafka_protocol::messages::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};

use crate::cluster::{Answer, Caller, Cluster};

pub(crate) fn find(
    cluster: &mut Cluster,
    caller: &Caller,
    request: OffsetForLeaderEpochRequest,
) -> Answer<OffsetForLeaderEpochResponse> {
    let fault = cluster.fault(caller);
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            let found = fault.map_or_else(|| end_of(cluster, caller, &topic.topic, asked), Err);
            let told = EpochEndOffset::default().with_partition(asked.partition);
            partitions.push(match found {
                Ok((epoch, offset)) => told.with_leader_epoch(epoch).with_end_offset(offset),
                Err(error) => told.with_error_code(error.code()).with_leader_epoch(-1).with_end_offset(-1),
            });
        }
        topics.push(OffsetForLeaderTopicResult::default().with_topic(topic.topic).with_partitions(partitions));
    }
    Answer::Now(OffsetForLeaderEpochResponse::default().with_topics(topics))
}

fn end_of(
    cluster: &mut Cluster,
    caller: &Caller,
    topic: &str,
    asked: &OffsetForLeaderPartition,
) -> Result<(i32, i64), ResponseError> {
    let partition = cluster.led(caller, topic, asked.partition, asked.current_leader_epoch)?;
    let found = partition.log.end_of_epoch(asked.leader_epoch, partition.leader_epoch);
    Ok(found.unwrap_or((-1, -1)))
}
