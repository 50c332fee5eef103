//! Produce: checks a batch as Kafka does and appends it.

use bytes::Bytes;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::{LeaderIdAndEpoch, PartitionProduceResponse, TopicProduceResponse};
use kafka_protocol::messages::{BrokerId, ProduceRequest, ProduceResponse};

use crate::batch::{self, Header};
use crate::cluster::{Answer, Caller, Cluster};
use crate::faults::Of;
use crate::fetch;
use crate::producers::Verdict;
use crate::records;

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
    let (mut failed, mut is_lost) = (false, false);
    let mut responses = Vec::with_capacity(request.topic_data.len());
    for topic in &request.topic_data {
        let name = name_of(cluster, caller, topic);
        let mut partitions = Vec::with_capacity(topic.partition_data.len());
        for data in &topic.partition_data {
            let written = match (fault, &name) {
                (Some(error), _) => Err(error),
                (None, Err(error)) => Err(*error),
                (None, Ok(name)) => match cluster.faults.take(Of::Produce, name) {
                    Some(error) => Err(error),
                    None => write(cluster, caller, &request, name, data),
                },
            };
            failed |= written.is_err();
            if let (Ok(_), Ok(name)) = (&written, &name) {
                is_lost |= cluster.faults.take(Of::Acknowledgement, name).is_some();
            }
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
        _ if is_lost => Answer::HangUp,
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
    bytes: &Bytes,
) -> Result<Option<i64>, ResponseError> {
    let header = batch::check(bytes)?;
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
    } else if topic.text("cleanup.policy", "delete").contains("compact") && records::lacks_a_key(&header, bytes) {
        Err(ResponseError::InvalidRecord)
    } else {
        verify(cluster, &header, request, name, partition)?;
        Ok(has_append_time.then_some(now_ms))
    }
}

/// Checks that a transactional batch belongs to a transaction which has named the partition.
fn verify(
    cluster: &Cluster,
    header: &Header,
    request: &ProduceRequest,
    topic: &str,
    partition: i32,
) -> Result<(), ResponseError> {
    if !header.is_transactional() {
        return Ok(());
    }
    let id = request.transactional_id.as_ref().ok_or(ResponseError::InvalidTxnState)?;
    let at = (topic.to_owned(), partition);
    cluster.transactions.verify(id, header.producer_id, header.producer_epoch, &at)
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use kafka_protocol::protocol::StrBytes;

    use super::*;
    use crate::testing::{By, Driven, NOT_NUMBERED, batch, batch_with_key};
    use kafka_protocol::messages::TopicName;

    fn request(topic: &str, partition: i32, acks: i16, records: Bytes) -> ProduceRequest {
        let data = PartitionProduceData::default().with_index(partition).with_records(Some(records));
        let name = TopicName(StrBytes::from_string(topic.to_owned()));
        let topic = TopicProduceData::default().with_name(name).with_partition_data(vec![data]);
        ProduceRequest::default().with_acks(acks).with_topic_data(vec![topic])
    }

    fn produced(driven: &mut Driven, request: &ProduceRequest) -> (i16, i64) {
        let response = driven.ask(9, request);
        let partition = &response.responses[0].partition_responses[0];
        (partition.error_code, partition.base_offset)
    }

    #[test]
    fn batches_get_their_offsets_in_order() {
        let mut driven = Driven::new(1);
        for (offset, version) in [(0, 3), (2, 9), (4, 12)] {
            let records = batch(NOT_NUMBERED, &[("a", 1), ("b", 2)]);
            let response = driven.ask(version, &request("orders", 0, -1, records));
            let partition = &response.responses[0].partition_responses[0];
            assert_eq!((partition.error_code, partition.base_offset), (0, offset));
        }
    }

    #[test]
    fn a_numbered_batch_is_written_once_and_in_order() {
        let mut driven = Driven::new(1);
        let send = |driven: &mut Driven, epoch: i16, sequence: i32| {
            let records = batch(By { id: 7, epoch, sequence, in_transaction: false }, &[("a", 1), ("b", 2)]);
            produced(driven, &request("orders", 0, -1, records))
        };
        assert_eq!(send(&mut driven, 0, 0), (0, 0));
        assert_eq!(send(&mut driven, 0, 2), (0, 2));
        assert_eq!(send(&mut driven, 0, 0), (0, 0), "a repeated batch has its first offset");
        assert_eq!(send(&mut driven, 0, 6), (ResponseError::OutOfOrderSequenceNumber.code(), -1));
        assert_eq!(send(&mut driven, 1, 0), (0, 4));
        assert_eq!(send(&mut driven, 0, 4), (ResponseError::InvalidProducerEpoch.code(), -1));
    }

    #[test]
    fn wrong_batches_get_kafkas_errors() {
        let mut driven = Driven::new(1);
        let now = driven.cluster.now.wall_ms;
        let good = batch(NOT_NUMBERED, &[("a", now)]);
        let torn = good.slice(..good.len() - 1);
        let mut changed = good.to_vec();
        changed[68] ^= 1;
        let mut old = good.to_vec();
        old[16] = 1;
        let twice = [good.clone(), good.clone()].concat();
        let future = batch(NOT_NUMBERED, &[("a", now + 3_700_000)]);
        let cases = [
            (request("orders", 9, -1, good.clone()), ResponseError::UnknownTopicOrPartition),
            (request("orders", -1, -1, good.clone()), ResponseError::UnknownTopicOrPartition),
            (request("none", 0, -1, good.clone()), ResponseError::UnknownTopicOrPartition),
            (request("orders", 0, 2, good.clone()), ResponseError::InvalidRequiredAcks),
            (request("orders", 0, -1, Bytes::new()), ResponseError::CorruptMessage),
            (request("orders", 0, -1, torn), ResponseError::CorruptMessage),
            (request("orders", 0, -1, changed.into()), ResponseError::CorruptMessage),
            (request("orders", 0, -1, old.into()), ResponseError::UnsupportedForMessageFormat),
            (request("orders", 0, -1, twice.into()), ResponseError::InvalidRecord),
            (request("orders", 0, -1, future), ResponseError::InvalidTimestamp),
        ];
        for (request, error) in cases {
            assert_eq!(produced(&mut driven, &request), (error.code(), -1), "{error:?}");
        }
        let settings = BTreeMap::from([("max.message.bytes".to_owned(), "60".to_owned())]);
        driven.cluster.topics.create("small", vec![vec![1]], settings);
        let too_large = request("small", 0, -1, good);
        assert_eq!(produced(&mut driven, &too_large).0, ResponseError::MessageTooLarge.code());
    }

    #[test]
    fn a_compacted_topic_takes_no_message_without_a_key() {
        let mut driven = Driven::new(1);
        let settings = BTreeMap::from([("cleanup.policy".to_owned(), "compact".to_owned())]);
        driven.cluster.topics.create("states", vec![vec![1]], settings);
        let keyless = request("states", 0, -1, batch(NOT_NUMBERED, &[("a", 1)]));
        assert_eq!(produced(&mut driven, &keyless).0, ResponseError::InvalidRecord.code());
        let keyed = request("states", 0, -1, batch_with_key(NOT_NUMBERED, Some("k"), &[("a", 1)]));
        assert_eq!(produced(&mut driven, &keyed), (0, 0));
    }

    #[test]
    fn a_request_without_acknowledgement_has_no_answer_and_a_failed_one_ends_the_connection() {
        let mut driven = Driven::new(1);
        let good = driven.send(9, &request("orders", 0, 0, batch(NOT_NUMBERED, &[("a", 1)])));
        assert!(!driven.hung_up(good));
        assert_eq!(driven.cluster.topics.partition("orders", 0).map(|each| each.log.end()), Ok(1));
        let bad = driven.send(9, &request("none", 0, 0, batch(NOT_NUMBERED, &[("a", 1)])));
        assert!(driven.hung_up(bad));
    }

    #[test]
    fn a_broker_that_does_not_lead_says_who_does() {
        let mut driven = Driven::new(2);
        let request = request("orders", 1, -1, batch(NOT_NUMBERED, &[("a", 1)]));
        let ticket = driven.send_to(1, 10, &request);
        let response = driven.answer::<ProduceRequest>(ticket, 10).expect("an answer");
        let partition = &response.responses[0].partition_responses[0];
        assert_eq!(partition.error_code, ResponseError::NotLeaderOrFollower.code());
        assert_eq!(partition.current_leader.leader_id, BrokerId(2));
    }

    #[test]
    fn a_slow_broker_answers_later_and_an_error_is_answered_once() {
        let mut driven = Driven::new(1);
        driven.cluster.brokers[0].round_trip = Duration::from_millis(50);
        driven.cluster.faults.refuse(0, ResponseError::NotEnoughReplicas);
        let request = request("orders", 0, -1, batch(NOT_NUMBERED, &[("a", 1)]));
        let ticket = driven.send(9, &request);
        assert!(driven.answer::<ProduceRequest>(ticket, 9).is_none());
        driven.pass(Duration::from_millis(50));
        let response = driven.answer::<ProduceRequest>(ticket, 9).expect("an answer");
        let failed = response.responses[0].partition_responses[0].error_code;
        assert_eq!(failed, ResponseError::NotEnoughReplicas.code());
        driven.cluster.brokers[0].round_trip = Duration::ZERO;
        assert_eq!(produced(&mut driven, &request), (0, 0));
    }

    #[test]
    fn a_topic_may_take_the_time_of_the_append() {
        let mut driven = Driven::new(1);
        let settings = BTreeMap::from([("message.timestamp.type".to_owned(), "LogAppendTime".to_owned())]);
        driven.cluster.topics.create("timed", vec![vec![1]], settings);
        let response = driven.ask(9, &request("timed", 0, -1, batch(NOT_NUMBERED, &[("a", 1)])));
        let now = driven.cluster.now.wall_ms;
        assert_eq!(response.responses[0].partition_responses[0].log_append_time_ms, now);
        let log = &driven.cluster.topics.partition("timed", 0).expect("it exists").log;
        let placed = log.batches().next().expect("a batch");
        assert!(placed.header.has_append_time() && placed.header.max_timestamp == now);
        assert_eq!(batch::check(&placed.bytes).map(|header| header.base_offset), Ok(0));
    }
}
