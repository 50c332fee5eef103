//! ListOffsets: the start, the end, and offsets by time.

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
