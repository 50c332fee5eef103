//! Fetch: reads batches, and keeps a request that finds too few bytes until there are enough or its time is over.
//!
//! No fetch sessions (KIP-227): the answer says so, and clients then name all their partitions each time.

use std::collections::HashMap;
use std::time::Duration;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::{
    AbortedTransaction, FetchableTopicResponse, LeaderIdAndEpoch, PartitionData,
};
use kafka_protocol::messages::{BrokerId, FetchRequest, FetchResponse, ProducerId};

use crate::cluster::{Answer, Caller, Cluster, Reply, Timer};
use crate::faults::Of;
use crate::log::Aborted;

const READ_COMMITTED: i8 = 1;
const IDS_SINCE: i16 = 13;

/// The fetches that wait, by their numbers.
#[derive(Default)]
pub(crate) struct Waiting {
    kept: HashMap<u64, Kept>,
}

struct Kept {
    caller: Caller,
    request: FetchRequest,
    reply: Reply<FetchResponse>,
}

pub(crate) fn fetch(cluster: &mut Cluster, caller: &Caller, request: FetchRequest) -> Answer<FetchResponse> {
    if let Some(error) = cluster.fault(caller) {
        return Answer::Now(refused(&request, error));
    }
    if request.session_id != 0 {
        return Answer::Now(FetchResponse::default().with_error_code(ResponseError::FetchSessionIdNotFound.code()));
    }
    if request.max_wait_ms <= 0 || has_enough(cluster, caller, &request) {
        return Answer::Now(read(cluster, caller, &request));
    }
    for topic in &request.topics {
        let Ok(name) = name_of(cluster, caller, topic) else { continue };
        for asked in &topic.partitions {
            if let Ok(partition) = cluster.topics.partition_mut(&name, asked.partition) {
                partition.watchers.push(caller.ticket);
            }
        }
    }
    let due = cluster.now.at + Duration::from_millis(request.max_wait_ms.unsigned_abs().into());
    cluster.remind(due, Timer::Fetch(caller.ticket));
    cluster.fetches.kept.insert(caller.ticket, Kept { caller: caller.clone(), request, reply: caller.reply() });
    Answer::Later
}

/// Answers the fetches that waited for a partition and now have enough. To be called when its readable end or its
/// leader changed.
pub(crate) fn wake(cluster: &mut Cluster, topic: &str, partition: i32) {
    let Ok(changed) = cluster.topics.partition_mut(topic, partition) else { return };
    let mut watchers = std::mem::take(&mut changed.watchers);
    watchers.retain(|id| {
        let Some(kept) = cluster.fetches.kept.remove(id) else { return false };
        let enough = has_enough(cluster, &kept.caller, &kept.request);
        if enough {
            let answer = read(cluster, &kept.caller, &kept.request);
            cluster.answer(&kept.reply, &answer);
        } else {
            cluster.fetches.kept.insert(*id, kept);
        }
        !enough
    });
    if let Ok(changed) = cluster.topics.partition_mut(topic, partition) {
        changed.watchers = watchers;
    }
}

/// Answers a fetch whose time is over, with what there is.
pub(crate) fn end(cluster: &mut Cluster, id: u64) {
    let Some(Kept { caller, request, reply }) = cluster.fetches.kept.remove(&id) else { return };
    for topic in &request.topics {
        let Ok(name) = name_of(cluster, &caller, topic) else { continue };
        for asked in &topic.partitions {
            if let Ok(partition) = cluster.topics.partition_mut(&name, asked.partition) {
                partition.watchers.retain(|watcher| *watcher != id);
            }
        }
    }
    let answer = read(cluster, &caller, &request);
    cluster.answer(&reply, &answer);
}

/// Answers all fetches that wait: topics or leaders changed.
pub(crate) fn end_all(cluster: &mut Cluster) {
    let ids: Vec<u64> = cluster.fetches.kept.keys().copied().collect();
    ids.into_iter().for_each(|id| end(cluster, id));
}

fn name_of(cluster: &Cluster, caller: &Caller, topic: &FetchTopic) -> Result<String, ResponseError> {
    if caller.version < IDS_SINCE {
        return Ok(topic.topic.to_string());
    }
    cluster.topics.name_of(topic.topic_id).map(str::to_owned).ok_or(ResponseError::UnknownTopicId)
}

/// Returns whether the request would be answered with enough bytes, or with an error.
fn has_enough(cluster: &mut Cluster, caller: &Caller, request: &FetchRequest) -> bool {
    let wanted = usize::try_from(request.min_bytes).unwrap_or(0);
    let committed = request.isolation_level == READ_COMMITTED;
    let mut found = 0;
    for topic in &request.topics {
        let Ok(name) = name_of(cluster, caller, topic) else { return true };
        if cluster.faults.is_due(Of::Fetch, &name) {
            return true;
        }
        for asked in &topic.partitions {
            if checked(cluster, caller, &name, asked).is_err() {
                return true;
            }
            let log = &cluster.topics.partition(&name, asked.partition).expect("it was checked").log;
            found += log.readable(asked.fetch_offset, committed, wanted.saturating_sub(found).max(1));
        }
    }
    found >= wanted
}

fn checked(cluster: &mut Cluster, caller: &Caller, topic: &str, asked: &FetchPartition) -> Result<(), ResponseError> {
    let partition = cluster.led(caller, topic, asked.partition, asked.current_leader_epoch)?;
    let known = partition.log.start()..=partition.log.end();
    if known.contains(&asked.fetch_offset) { Ok(()) } else { Err(ResponseError::OffsetOutOfRange) }
}

fn read(cluster: &mut Cluster, caller: &Caller, request: &FetchRequest) -> FetchResponse {
    let committed = request.isolation_level == READ_COMMITTED;
    let mut left = usize::try_from(request.max_bytes).unwrap_or(0);
    let mut is_first = true;
    let mut responses = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let name = name_of(cluster, caller, topic);
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            let name = match &name {
                Ok(name) => name,
                Err(error) => {
                    partitions.push(failed(asked.partition, *error));
                    continue;
                }
            };
            let fault = cluster.faults.take(Of::Fetch, name);
            if let Err(error) = fault.map_or_else(|| checked(cluster, caller, name, asked), Err) {
                partitions.push(with_leader(cluster, name, failed(asked.partition, error), error));
                continue;
            }
            let log = &cluster.topics.partition(name, asked.partition).expect("it was checked").log;
            let room = left.min(usize::try_from(asked.partition_max_bytes).unwrap_or(0));
            let slice = log.read(asked.fetch_offset, room, committed, is_first);
            left = left.saturating_sub(slice.records.len());
            is_first &= slice.records.is_empty();
            partitions.push(
                PartitionData::default()
                    .with_partition_index(asked.partition)
                    .with_high_watermark(log.end())
                    .with_last_stable_offset(log.last_stable())
                    .with_log_start_offset(log.start())
                    .with_aborted_transactions(committed.then(|| slice.aborted.iter().map(told).collect()))
                    .with_preferred_read_replica(BrokerId(-1))
                    .with_records(Some(slice.records)),
            );
        }
        responses.push(
            FetchableTopicResponse::default()
                .with_topic(topic.topic.clone())
                .with_topic_id(topic.topic_id)
                .with_partitions(partitions),
        );
    }
    FetchResponse::default().with_responses(responses)
}

fn told(aborted: &Aborted) -> AbortedTransaction {
    AbortedTransaction::default()
        .with_producer_id(ProducerId(aborted.producer_id))
        .with_first_offset(aborted.first_offset)
}

fn failed(partition: i32, error: ResponseError) -> PartitionData {
    PartitionData::default()
        .with_partition_index(partition)
        .with_error_code(error.code())
        .with_high_watermark(-1)
        .with_last_stable_offset(-1)
        .with_log_start_offset(-1)
        .with_preferred_read_replica(BrokerId(-1))
        .with_records(Some(bytes::Bytes::new()))
}

/// Tells the leader, so that the client need not ask (KIP-951).
fn with_leader(cluster: &Cluster, topic: &str, data: PartitionData, error: ResponseError) -> PartitionData {
    let is_leader = matches!(error, ResponseError::NotLeaderOrFollower | ResponseError::FencedLeaderEpoch);
    match cluster.topics.partition(topic, data.partition_index) {
        Ok(partition) if is_leader => data.with_current_leader(
            LeaderIdAndEpoch::default()
                .with_leader_id(BrokerId(partition.leader.unwrap_or(-1)))
                .with_leader_epoch(partition.leader_epoch),
        ),
        _ => data,
    }
}

fn refused(request: &FetchRequest, error: ResponseError) -> FetchResponse {
    let partitions =
        |topic: &FetchTopic| topic.partitions.iter().map(|asked| failed(asked.partition, error)).collect::<Vec<_>>();
    let topic = |topic: &FetchTopic| {
        FetchableTopicResponse::default()
            .with_topic(topic.topic.clone())
            .with_topic_id(topic.topic_id)
            .with_partitions(partitions(topic))
    };
    FetchResponse::default().with_responses(request.topics.iter().map(topic).collect())
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::TopicName;
    use kafka_protocol::protocol::StrBytes;

    use super::*;
    use crate::testing::{By, Driven, NOT_NUMBERED, Written, batch, fetch_request, messages};

    fn append(driven: &mut Driven, by: By, written: &[Written]) {
        let log = &mut driven.cluster.topics.partition_mut("orders", 0).expect("it exists").log;
        log.append(&batch(by, written), 0, None);
        wake(&mut driven.cluster, "orders", 0);
    }

    fn only(response: &FetchResponse) -> &PartitionData {
        &response.responses[0].partitions[0]
    }

    fn values(response: &FetchResponse) -> Vec<(i64, Option<String>)> {
        messages(only(response).records.as_ref().expect("records"))
    }

    #[test]
    fn every_version_reads_whole_batches() {
        let mut driven = Driven::new(1);
        append(&mut driven, NOT_NUMBERED, &[("a", 1), ("b", 2)]);
        append(&mut driven, NOT_NUMBERED, &[("c", 3)]);
        let id = driven.cluster.topics.get("orders").expect("it exists").id;
        for version in 4..=17 {
            let mut request = fetch_request(1, 0);
            if version >= IDS_SINCE {
                request.topics[0].topic = TopicName::default();
                request.topics[0].topic_id = id;
            }
            let response = driven.ask(version, &request);
            let read: Vec<i64> = values(&response).iter().map(|(offset, _)| *offset).collect();
            assert_eq!((only(&response).high_watermark, read), (3, vec![0, 1, 2]), "version {version}");
        }
    }

    #[test]
    fn a_fetch_waits_for_messages_or_for_its_time() {
        let mut driven = Driven::new(1);
        let first = driven.send(11, &fetch_request(0, 500));
        assert!(driven.answer::<FetchRequest>(first, 11).is_none());
        append(&mut driven, NOT_NUMBERED, &[("a", 1)]);
        driven.pass(Duration::ZERO);
        let response = driven.answer::<FetchRequest>(first, 11).expect("woken by the message");
        assert_eq!(values(&response).len(), 1);
        let second = driven.send(11, &fetch_request(1, 500));
        driven.pass(Duration::from_millis(499));
        assert!(driven.answer::<FetchRequest>(second, 11).is_none());
        driven.pass(Duration::from_millis(1));
        let response = driven.answer::<FetchRequest>(second, 11).expect("its time is over");
        assert_eq!(only(&response).records.as_ref().map(bytes::Bytes::len), Some(0));
        let partition = driven.cluster.topics.partition("orders", 0).expect("it exists");
        assert!(partition.watchers.is_empty() && driven.cluster.fetches.kept.is_empty());
    }

    #[test]
    fn a_reader_of_committed_messages_sees_decided_ones_and_learns_of_aborted_ones() {
        let mut driven = Driven::new(1);
        let by = |id: i64| By { id, epoch: 0, sequence: 0, in_transaction: true };
        append(&mut driven, by(1), &[("a", 1)]);
        append(&mut driven, by(2), &[("b", 1)]);
        let committed = fetch_request(0, 0).with_isolation_level(READ_COMMITTED);
        let response = driven.ask(11, &committed);
        assert_eq!((only(&response).last_stable_offset, values(&response).len()), (0, 0));
        assert_eq!(values(&driven.ask(11, &fetch_request(0, 0))).len(), 2);
        let log = &mut driven.cluster.topics.partition_mut("orders", 0).expect("it exists").log;
        log.end_transaction(1, 0, false, 0, 5);
        let response = driven.ask(11, &committed);
        assert_eq!((only(&response).last_stable_offset, values(&response).len()), (1, 1));
        let aborted = only(&response).aborted_transactions.as_deref().expect("a list");
        assert_eq!((aborted.len(), aborted[0].producer_id, aborted[0].first_offset), (1, ProducerId(1), 0));
        let log = &mut driven.cluster.topics.partition_mut("orders", 0).expect("it exists").log;
        log.end_transaction(2, 0, true, 0, 5);
        let response = driven.ask(11, &committed);
        assert_eq!((only(&response).last_stable_offset, values(&response).len()), (4, 4));
        assert_eq!(values(&response)[2], (2, None));
    }

    #[test]
    fn wrong_offsets_epochs_and_names_get_kafkas_errors() {
        let mut driven = Driven::new(2);
        let error = |driven: &mut Driven, request: &FetchRequest| only(&driven.ask(12, request)).error_code;
        assert_eq!(error(&mut driven, &fetch_request(1, 500)), ResponseError::OffsetOutOfRange.code());
        let mut ahead = fetch_request(0, 500);
        ahead.topics[0].partitions[0].current_leader_epoch = 3;
        assert_eq!(error(&mut driven, &ahead), ResponseError::UnknownLeaderEpoch.code());
        let mut other = fetch_request(0, 500);
        other.topics[0].partitions[0].partition = 1;
        let response = driven.ask(12, &other);
        assert_eq!(only(&response).error_code, ResponseError::NotLeaderOrFollower.code());
        assert_eq!(only(&response).current_leader.leader_id, BrokerId(2));
        let mut unknown = fetch_request(0, 500);
        unknown.topics[0].topic = TopicName(StrBytes::from_static_str("none"));
        assert_eq!(error(&mut driven, &unknown), ResponseError::UnknownTopicOrPartition.code());
    }

    #[test]
    fn the_first_batch_is_read_whatever_its_size() {
        let mut driven = Driven::new(1);
        append(&mut driven, NOT_NUMBERED, &[("a", 1)]);
        append(&mut driven, NOT_NUMBERED, &[("b", 1)]);
        let mut small = fetch_request(0, 0);
        small.topics[0].partitions[0].partition_max_bytes = 1;
        assert_eq!(values(&driven.ask(11, &small)).len(), 1);
    }
}
