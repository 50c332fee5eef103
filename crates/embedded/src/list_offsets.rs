//! `ListOffsets`: the start, the end, and offsets by time.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::list_offsets_request::ListOffsetsPartition;
use kafka_protocol::messages::list_offsets_response::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};
use kafka_protocol::messages::{ListOffsetsRequest, ListOffsetsResponse};

use crate::cluster::{Answer, Caller, Cluster};

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
/// The first offset on the broker's own disk, which is all that there is.
const EARLIEST_LOCAL: i64 = -4;
/// The last offset in remote storage, of which there is none.
const LATEST_TIERED: i64 = -5;
const EPOCHS_SINCE: i16 = 4;
const NO_EPOCH: i32 = -1;

pub(crate) fn list_offsets(
    cluster: &mut Cluster,
    caller: &Caller,
    request: ListOffsetsRequest,
) -> Answer<ListOffsetsResponse> {
    let fault = cluster.fault(caller);
    let committed = request.isolation_level == 1;
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            let found = match fault {
                Some(error) => Err(error),
                None => find(cluster, caller, &topic.name, asked, committed),
            };
            let response = ListOffsetsPartitionResponse::default().with_partition_index(asked.partition_index);
            partitions.push(match found {
                Ok(Found { timestamp, offset, epoch }) => {
                    let epoch = if caller.version < EPOCHS_SINCE { NO_EPOCH } else { epoch };
                    response.with_timestamp(timestamp).with_offset(offset).with_leader_epoch(epoch)
                }
                Err(error) => response.with_error_code(error.code()).with_timestamp(-1).with_offset(-1),
            });
        }
        topics.push(ListOffsetsTopicResponse::default().with_name(topic.name.clone()).with_partitions(partitions));
    }
    Answer::Now(ListOffsetsResponse::default().with_topics(topics))
}

struct Found {
    timestamp: i64,
    offset: i64,
    epoch: i32,
}

fn find(
    cluster: &mut Cluster,
    caller: &Caller,
    topic: &str,
    asked: &ListOffsetsPartition,
    committed: bool,
) -> Result<Found, ResponseError> {
    let partition = cluster.led(caller, topic, asked.partition_index, asked.current_leader_epoch)?;
    let (log, epoch) = (&partition.log, partition.leader_epoch);
    let at = |timestamp: i64, offset: i64| Found { timestamp, offset, epoch };
    let found = match asked.timestamp {
        LATEST => at(-1, log.end_for(committed)),
        EARLIEST | EARLIEST_LOCAL => at(-1, log.start()),
        LATEST_TIERED => at(-1, -1),
        MAX_TIMESTAMP => log.newest().map_or(at(-1, -1), |(timestamp, offset)| at(timestamp, offset)),
        wanted => match log.first_since(wanted) {
            Some((timestamp, offset)) if offset < log.end_for(committed) => at(timestamp, offset),
            _ => at(-1, -1),
        },
    };
    Ok(found)
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::TopicName;
    use kafka_protocol::messages::list_offsets_request::ListOffsetsTopic;
    use kafka_protocol::protocol::StrBytes;

    use super::*;
    use crate::testing::{By, Driven, NOT_NUMBERED, batch};

    fn asked(driven: &mut Driven, version: i16, timestamp: i64, isolation_level: i8) -> (i64, i64) {
        let partition = ListOffsetsPartition::default().with_timestamp(timestamp).with_current_leader_epoch(-1);
        let name = TopicName(StrBytes::from_static_str("orders"));
        let topic = ListOffsetsTopic::default().with_name(name).with_partitions(vec![partition]);
        let request = ListOffsetsRequest::default().with_topics(vec![topic]).with_isolation_level(isolation_level);
        let response = driven.ask(version, &request);
        let found = &response.topics[0].partitions[0];
        assert_eq!(found.error_code, 0);
        (found.timestamp, found.offset)
    }

    #[test]
    fn offsets_are_found_by_time_at_the_ends_and_by_the_newest() {
        let mut driven = Driven::new(1);
        assert_eq!(asked(&mut driven, 7, MAX_TIMESTAMP, 0), (-1, -1));
        let log = &mut driven.cluster.topics.partition_mut("orders", 0).expect("it exists").log;
        log.append(&batch(NOT_NUMBERED, &[("a", 100), ("b", 300)]), 0, None);
        log.append(&batch(NOT_NUMBERED, &[("c", 200), ("d", 400)]), 0, None);
        log.append(&batch(NOT_NUMBERED, &[("e", 50)]), 0, None);
        for version in 1..=9 {
            assert_eq!(asked(&mut driven, version, EARLIEST, 0), (-1, 0), "version {version}");
            assert_eq!(asked(&mut driven, version, LATEST, 0), (-1, 5), "version {version}");
            assert_eq!(asked(&mut driven, version, 101, 0), (300, 1), "version {version}");
        }
        for (timestamp, found) in [(0, (100, 0)), (100, (100, 0)), (300, (300, 1)), (301, (400, 3)), (401, (-1, -1))] {
            assert_eq!(asked(&mut driven, 7, timestamp, 0), found, "since {timestamp}");
        }
        assert_eq!(asked(&mut driven, 7, MAX_TIMESTAMP, 0), (400, 3));
    }

    #[test]
    fn the_end_of_committed_messages_is_before_open_transactions() {
        let mut driven = Driven::new(1);
        let log = &mut driven.cluster.topics.partition_mut("orders", 0).expect("it exists").log;
        log.append(&batch(NOT_NUMBERED, &[("a", 100)]), 0, None);
        log.append(&batch(By { id: 1, epoch: 0, sequence: 0, in_transaction: true }, &[("b", 200)]), 0, None);
        assert_eq!(asked(&mut driven, 2, LATEST, 1), (-1, 1));
        assert_eq!(asked(&mut driven, 2, LATEST, 0), (-1, 2));
        assert_eq!(asked(&mut driven, 2, 150, 1), (-1, -1));
    }
}
