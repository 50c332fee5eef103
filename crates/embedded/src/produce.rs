//! Produce: checks a batch as Kafka does and appends it.

use bytes::Bytes;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::{LeaderIdAndEpoch, PartitionProduceResponse, TopicProduceResponse};
use kafka_protocol::messages::{BrokerId, ProduceRequest, ProduceResponse};

use crate::batch;
use crate::cluster::{Answer, Caller, Cluster};
use crate::fetch;
use crate::producers::Verdict;

/// Kafka's defaults of topic settings.
const MAX_MESSAGE_BYTES: i64 = 1_048_588;
const TIMESTAMP_AFTER_MAX_MS: i64 = 3_600_000;
const ZSTD: i16 = 4;
const ZSTD_SINCE: i16 = 7;

pub(crate) fn produce(cluster: &mut Cluster, caller: &Caller, request: ProduceRequest) -> Answer<ProduceResponse> {
    let fault = match request.acks {
        -1..=1 => cluster.fault(caller),
        _ => Some(ResponseError::InvalidRequiredAcks),
    };
    let mut failed = false;
    let mut responses = Vec::with_capacity(request.topic_data.len());
    for topic in &request.topic_data {
        let name = name_of(cluster, caller, topic);
        let mut partitions = Vec::with_capacity(topic.partition_data.len());
        for data in &topic.partition_data {
            let written = match (fault, &name) {
                (Some(error), _) => Err(error),
                (None, Err(error)) => Err(*error),
                (None, Ok(name)) => write(cluster, caller, &request, name, data),
            };
            failed |= written.is_err();
            partitions.push(told(cluster, name.as_deref().unwrap_or(""), data, written));
        }
        responses.push(
            TopicProduceResponse::default()
                .with_name(topic.name.clone())
                .with_topic_id(topic.topic_id)
                .with_partition_responses(partitions),
        );
    }
    match request.acks {
        0 if failed => Answer::HangUp,
        0 => Answer::Never,
        _ => Answer::Now(ProduceResponse::default().with_responses(responses)),
    }
}

fn name_of(cluster: &Cluster, caller: &Caller, topic: &TopicProduceData) -> Result<String, ResponseError> {
    if caller.version < 13 {
        return Ok(topic.name.to_string());
    }
    cluster.topics.name_of(topic.topic_id).map(str::to_owned).ok_or(ResponseError::UnknownTopicId)
}

/// Where a batch was written.
struct Written {
    base_offset: i64,
    append_time: i64,
    start: i64,
}

fn write(
    cluster: &mut Cluster,
    caller: &Caller,
    request: &ProduceRequest,
    topic: &str,
    data: &PartitionProduceData,
) -> Result<Written, ResponseError> {
    cluster.led(caller, topic, data.index, -1)?;
    let records = data.records.as_ref().ok_or(ResponseError::InvalidRecord)?;
    let append_time = check(cluster, caller, request, topic, data.index, records)?;
    let header = batch::Header::read(records)?;
    let partition = cluster.topics.partition_mut(topic, data.index)?;
    let base_offset = match partition.log.producers.judge(&header)? {
        Verdict::Duplicate(offset) => offset,
        Verdict::Append => {
            let offset = partition.log.append(records, partition.leader_epoch, append_time);
            fetch::wake(cluster, topic, data.index);
            offset
        }
    };
    let start = cluster.topics.partition(topic, data.index)?.log.start();
    Ok(Written { base_offset, append_time: append_time.unwrap_or(-1), start })
}

/// Checks a batch, and returns the time that its messages get where the topic takes the time of the append.
fn check(
    cluster: &Cluster,
    caller: &Caller,
    request: &ProduceRequest,
    name: &str,
    partition: i32,
    records: &Bytes,
) -> Result<Option<i64>, ResponseError> {
    let header = batch::check(records)?;
    let topic = cluster.topics.get(name).ok_or(ResponseError::UnknownTopicOrPartition)?;
    let now_ms = cluster.now.wall_ms;
    let has_append_time = topic.text("message.timestamp.type", "CreateTime") == "LogAppendTime";
    let newest = now_ms.saturating_add(topic.number("message.timestamp.after.max.ms", TIMESTAMP_AFTER_MAX_MS));
    let oldest = now_ms.saturating_sub(topic.number("message.timestamp.before.max.ms", i64::MAX));
    let in_sync = cluster.topics.partition(name, partition)?.replicas.iter();
    let in_sync = in_sync.filter(|id| cluster.broker(**id).is_some_and(|broker| broker.is_up)).count() as i64;
    if header.codec() == ZSTD && caller.version < ZSTD_SINCE {
        Err(ResponseError::UnsupportedCompressionType)
    } else if header.size as i64 > topic.number("max.message.bytes", MAX_MESSAGE_BYTES) {
        Err(ResponseError::MessageTooLarge)
    } else if !has_append_time && (header.max_timestamp > newest || header.base_timestamp < oldest) {
        Err(ResponseError::InvalidTimestamp)
    } else if request.acks == -1 && in_sync < topic.number("min.insync.replicas", 1) {
        Err(ResponseError::NotEnoughReplicas)
    } else if header.is_transactional() != request.transactional_id.is_some() && header.is_transactional() {
        Err(ResponseError::InvalidTxnState)
    } else {
        Ok(has_append_time.then_some(now_ms))
    }
}

fn told(
    cluster: &Cluster,
    topic: &str,
    data: &PartitionProduceData,
    written: Result<Written, ResponseError>,
) -> PartitionProduceResponse {
    let response = PartitionProduceResponse::default().with_index(data.index);
    let error = match written {
        Ok(Written { base_offset, append_time, start }) => {
            return response
                .with_base_offset(base_offset)
                .with_log_append_time_ms(append_time)
                .with_log_start_offset(start);
        }
        Err(error) => error,
    };
    let response = response.with_error_code(error.code()).with_base_offset(-1).with_log_append_time_ms(-1);
    match cluster.topics.partition(topic, data.index) {
        // The leader is told, so that the client need not ask (KIP-951).
        Ok(partition) if error == ResponseError::NotLeaderOrFollower => response.with_current_leader(
            LeaderIdAndEpoch::default()
                .with_leader_id(BrokerId(partition.leader.unwrap_or(-1)))
                .with_leader_epoch(partition.leader_epoch),
        ),
        _ => response,
    }
}
