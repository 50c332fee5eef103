//! `TxnOffsetCommit`: offsets that count when their transaction commits.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::txn_offset_commit_response::{
    TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic,
};
use kafka_protocol::messages::{TxnOffsetCommitRequest, TxnOffsetCommitResponse};

use crate::cluster::{Answer, Caller, Cluster};
use crate::faults::Of;
use crate::groups::offsets::{self, Committed, Committer};
use crate::transactions::State;

pub(crate) fn commit(
    cluster: &mut Cluster,
    caller: &Caller,
    request: TxnOffsetCommitRequest,
) -> Answer<TxnOffsetCommitResponse> {
    let fault = cluster.fault(caller);
    let checked = fault.map_or_else(|| check(cluster, caller, &request), Err);
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            let metadata = asked.committed_metadata.as_ref();
            let index = asked.partition_index;
            let kept = checked.and_then(|()| offsets::check_offset(cluster, &topic.name, index, metadata));
            if kept.is_ok() {
                let committed = Committed {
                    offset: asked.committed_offset,
                    leader_epoch: asked.committed_leader_epoch,
                    metadata: metadata.map(ToString::to_string).unwrap_or_default(),
                };
                let group = cluster.groups.entry(&request.group_id);
                group.offsets.add_pending(request.producer_id.0, &topic.name, index, committed);
            }
            partitions.push(
                TxnOffsetCommitResponsePartition::default()
                    .with_partition_index(index)
                    .with_error_code(kept.err().map_or(0, |error| error.code())),
            );
        }
        topics.push(TxnOffsetCommitResponseTopic::default().with_name(topic.name.clone()).with_partitions(partitions));
    }
    Answer::Now(TxnOffsetCommitResponse::default().with_topics(topics))
}

fn check(cluster: &mut Cluster, caller: &Caller, request: &TxnOffsetCommitRequest) -> Result<(), ResponseError> {
    let group = request.group_id.as_str();
    if group.is_empty() {
        return Err(ResponseError::InvalidGroupId);
    }
    cluster.check_coordinator(caller, group)?;
    cluster.faults.take(Of::Commit, group).map_or(Ok(()), Err)?;
    let known = cluster.transactions.get(&request.transactional_id);
    let known = known.filter(|known| known.producer_id == request.producer_id.0);
    let known = known.ok_or(ResponseError::InvalidProducerIdMapping)?;
    if known.epoch != request.producer_epoch {
        return Err(ResponseError::InvalidProducerEpoch);
    }
    if known.state != State::Ongoing || !known.groups.contains(group) {
        return Err(ResponseError::InvalidTxnState);
    }
    let by = Committer {
        member_id: &request.member_id,
        generation: request.generation_id,
        instance_id: request.group_instance_id.as_ref(),
        in_transaction: true,
    };
    offsets::check(cluster, group, &by)
}
