//! `AddPartitionsToTxn` and `AddOffsetsToTxn`: a producer names the partitions and the groups of its transaction.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::add_partitions_to_txn_response::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnTopicResult,
};
use kafka_protocol::messages::{
    AddOffsetsToTxnRequest, AddOffsetsToTxnResponse, AddPartitionsToTxnRequest, AddPartitionsToTxnResponse,
};

use crate::cluster::{Answer, Caller, Cluster};
use crate::transactions::begin;

pub(crate) fn partitions(
    cluster: &mut Cluster,
    caller: &Caller,
    request: AddPartitionsToTxnRequest,
) -> Answer<AddPartitionsToTxnResponse> {
    let fault = cluster.fault(caller);
    let topics = &request.v3_and_below_topics;
    let named =
        || topics.iter().flat_map(|topic| topic.partitions.iter().map(|index| (topic.name.to_string(), *index)));
    let is_unknown = |cluster: &Cluster, index: i32, topic: &str| cluster.topics.partition(topic, index).is_err();
    let all_known = !named().any(|(topic, index)| is_unknown(cluster, index, &topic));
    let id = request.v3_and_below_transactional_id.to_string();
    let (producer_id, epoch) = (request.v3_and_below_producer_id.0, request.v3_and_below_producer_epoch);
    let checked = fault.map_or_else(|| cluster.check_coordinator(caller, &id), Err);
    let checked = checked.and_then(|()| cluster.transactions.own(caller, &id, producer_id, epoch).map(drop));
    if checked.is_ok() && all_known {
        begin(cluster, &id);
        if let Some(transaction) = cluster.transactions.by_id.get_mut(&id) {
            transaction.partitions.extend(named());
        }
    }
    let result = |topic: &str, index: i32| match checked {
        Err(error) => error.code(),
        Ok(()) if is_unknown(cluster, index, topic) => ResponseError::UnknownTopicOrPartition.code(),
        Ok(()) if !all_known => ResponseError::OperationNotAttempted.code(),
        Ok(()) => 0,
    };
    let told = topics.iter().map(|topic| {
        let partition = |index: &i32| {
            AddPartitionsToTxnPartitionResult::default()
                .with_partition_index(*index)
                .with_partition_error_code(result(&topic.name, *index))
        };
        let partitions = topic.partitions.iter().map(partition).collect();
        AddPartitionsToTxnTopicResult::default().with_name(topic.name.clone()).with_results_by_partition(partitions)
    });
    Answer::Now(AddPartitionsToTxnResponse::default().with_results_by_topic_v3_and_below(told.collect()))
}

pub(crate) fn offsets(
    cluster: &mut Cluster,
    caller: &Caller,
    request: AddOffsetsToTxnRequest,
) -> Answer<AddOffsetsToTxnResponse> {
    let fault = cluster.fault(caller);
    let added = fault.map_or_else(|| add_group(cluster, caller, &request), Err);
    Answer::Now(AddOffsetsToTxnResponse::default().with_error_code(added.err().map_or(0, |error| error.code())))
}

fn add_group(cluster: &mut Cluster, caller: &Caller, request: &AddOffsetsToTxnRequest) -> Result<(), ResponseError> {
    let id = request.transactional_id.to_string();
    if request.group_id.is_empty() {
        return Err(ResponseError::InvalidGroupId);
    }
    cluster.check_coordinator(caller, &id)?;
    cluster.transactions.own(caller, &id, request.producer_id.0, request.producer_epoch)?;
    begin(cluster, &id);
    if let Some(transaction) = cluster.transactions.by_id.get_mut(&id) {
        transaction.groups.insert(request.group_id.to_string());
    }
    Ok(())
}
