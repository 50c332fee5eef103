//! `DeleteTopics`, `CreatePartitions` and `DeleteRecords`.

use std::collections::BTreeSet;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_partitions_response::CreatePartitionsTopicResult;
use kafka_protocol::messages::delete_records_response::{DeleteRecordsPartitionResult, DeleteRecordsTopicResult};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::{
    CreatePartitionsRequest, CreatePartitionsResponse, DeleteRecordsRequest, DeleteRecordsResponse,
    DeleteTopicsRequest, DeleteTopicsResponse, TopicName,
};
use kafka_protocol::protocol::StrBytes;

use crate::admin::Refusal;
use crate::cluster::{Answer, Caller, Cluster};
use crate::fetch;

/// Since this version topics may be named by their ids.
const IDS_SINCE: i16 = 6;
/// Deletes all records so far.
const TO_THE_END: i64 = -1;
const PARTITIONS_MAX: i32 = 10_000;

pub(crate) fn delete(
    cluster: &mut Cluster,
    caller: &Caller,
    request: DeleteTopicsRequest,
) -> Answer<DeleteTopicsResponse> {
    let fault = cluster.fault(caller);
    let named = request.topic_names.into_iter().map(|name| DeleteTopicState::default().with_name(Some(name)));
    let asked: Vec<DeleteTopicState> = if caller.version < IDS_SINCE { named.collect() } else { request.topics };
    let responses = asked.into_iter().map(|topic| {
        let deleted = fault.map_or_else(|| forget(cluster, &topic), Err);
        let result = DeletableTopicResult::default().with_name(topic.name.clone()).with_topic_id(topic.topic_id);
        match deleted {
            Ok((name, id)) => result.with_name(Some(TopicName(StrBytes::from_string(name)))).with_topic_id(id),
            Err(error) => result.with_error_code(error.code()),
        }
    });
    let responses = responses.collect::<Vec<_>>();
    // Readers of a deleted topic learn it at once.
    fetch::end_all(cluster);
    Answer::Now(DeleteTopicsResponse::default().with_responses(responses))
}

fn forget(cluster: &mut Cluster, topic: &DeleteTopicState) -> Result<(String, uuid::Uuid), ResponseError> {
    let name = match &topic.name {
        Some(name) => name.to_string(),
        None => cluster.topics.name_of(topic.topic_id).ok_or(ResponseError::UnknownTopicId)?.to_owned(),
    };
    let deleted = cluster.topics.delete(&name).ok_or(ResponseError::UnknownTopicOrPartition)?;
    cluster.groups.forget_topic(&name);
    cluster.transactions.forget_topic(&name);
    Ok((name, deleted.id))
}

pub(crate) fn create_partitions(
    cluster: &mut Cluster,
    caller: &Caller,
    request: CreatePartitionsRequest,
) -> Answer<CreatePartitionsResponse> {
    let fault = cluster.fault(caller);
    let mut results = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let planned = fault.map_or_else(|| more(cluster, &topic), |error| Err(error.into()));
        let result = CreatePartitionsTopicResult::default().with_name(topic.name.clone());
        results.push(match planned {
            Ok(replicas) => {
                if !request.validate_only {
                    cluster.topics.add_partitions(&topic.name, replicas);
                }
                result
            }
            Err(refusal) => result.with_error_code(refusal.error.code()).with_error_message(refusal.told()),
        });
    }
    Answer::Now(CreatePartitionsResponse::default().with_results(results))
}

/// Returns the replicas of the partitions that are to be added.
fn more(cluster: &Cluster, topic: &CreatePartitionsTopic) -> Result<Vec<Vec<i32>>, Refusal> {
    let known = cluster.topics.get(&topic.name).ok_or(ResponseError::UnknownTopicOrPartition)?;
    let (now, name) = (known.partitions.len(), topic.name.as_str());
    let refuse = |text: String| Err(Refusal::new(ResponseError::InvalidPartitions, text));
    let wanted = match usize::try_from(topic.count) {
        Ok(wanted) if wanted == now => return refuse(format!("Topic already has {now} partition(s).")),
        Ok(wanted) if wanted > now => wanted,
        _ => {
            let text =
                format!("The topic {name} currently has {now} partition(s); {} would not be an increase.", topic.count);
            return refuse(text);
        }
    };
    if topic.count > PARTITIONS_MAX {
        return refuse(format!("A topic has at most {PARTITIONS_MAX} partitions here."));
    }
    let Some(assignments) = &topic.assignments else {
        let replicas = known.partitions.first().map_or(1, |partition| partition.replicas.len());
        return Ok(cluster.spread(now, wanted - now, replicas));
    };
    let replicas: Vec<Vec<i32>> =
        assignments.iter().map(|each| each.broker_ids.iter().map(|id| id.0).collect()).collect();
    let is_known = |replicas: &Vec<i32>| {
        let distinct: BTreeSet<i32> = replicas.iter().copied().collect();
        !replicas.is_empty()
            && distinct.len() == replicas.len()
            && replicas.iter().all(|id| cluster.broker(*id).is_some())
    };
    if replicas.len() != wanted - now || !replicas.iter().all(is_known) {
        let text = format!(
            "Attempted to add {} additional partition(s), but {} assignment(s) were specified.",
            wanted - now,
            replicas.len()
        );
        return Err(Refusal::new(ResponseError::InvalidReplicaAssignment, text));
    }
    Ok(replicas)
}

pub(crate) fn delete_records(
    cluster: &mut Cluster,
    caller: &Caller,
    request: DeleteRecordsRequest,
) -> Answer<DeleteRecordsResponse> {
    let fault = cluster.fault(caller);
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in topic.partitions {
            let index = asked.partition_index;
            let start = fault.map_or_else(|| cut(cluster, caller, &topic.name, index, asked.offset), Err);
            let result = DeleteRecordsPartitionResult::default().with_partition_index(index);
            partitions.push(match start {
                Ok(start) => result.with_low_watermark(start),
                Err(error) => result.with_low_watermark(-1).with_error_code(error.code()),
            });
        }
        topics.push(DeleteRecordsTopicResult::default().with_name(topic.name).with_partitions(partitions));
    }
    Answer::Now(DeleteRecordsResponse::default().with_topics(topics))
}

fn cut(cluster: &mut Cluster, caller: &Caller, topic: &str, index: i32, offset: i64) -> Result<i64, ResponseError> {
    let partition = cluster.led(caller, topic, index, -1)?;
    let before = if offset == TO_THE_END { partition.log.end() } else { offset };
    if before < 0 || before > partition.log.end() {
        return Err(ResponseError::OffsetOutOfRange);
    }
    partition.log.delete_before(before);
    Ok(partition.log.start())
}
