//! The requests that the brokers answer: their numbers, their versions, and the function for each.

use bytes::{Buf, Bytes};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::{
    AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, AlterConfigsRequest, ApiKey, ApiVersionsRequest,
    ApiVersionsResponse, ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest, CreateAclsRequest,
    CreatePartitionsRequest, CreateTopicsRequest, DeleteAclsRequest, DeleteGroupsRequest, DeleteRecordsRequest,
    DeleteTopicsRequest, DescribeAclsRequest, DescribeClusterRequest, DescribeConfigsRequest, DescribeGroupsRequest,
    DescribeLogDirsRequest, DescribeProducersRequest, DescribeTopicPartitionsRequest, DescribeTransactionsRequest,
    ElectLeadersRequest, EndTxnRequest, FetchRequest, FindCoordinatorRequest, HeartbeatRequest,
    IncrementalAlterConfigsRequest, InitProducerIdRequest, JoinGroupRequest, LeaveGroupRequest, ListGroupsRequest,
    ListOffsetsRequest, ListTransactionsRequest, MetadataRequest, OffsetCommitRequest, OffsetDeleteRequest,
    OffsetFetchRequest, OffsetForLeaderEpochRequest, ProduceRequest, RequestHeader, SyncGroupRequest,
    TxnOffsetCommitRequest,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion};

use crate::cluster::{Answer, Caller, Cluster};
use crate::{admin, coordinator, fetch, groups, leader_epochs, list_offsets, metadata, produce, transactions};

/// A kind of request that is served.
struct Served {
    key: ApiKey,
    min: i16,
    max: i16,
    serve: fn(&mut Cluster, &Caller, Bytes),
}

/// Names the kinds: the key, its versions, the type of the request, the function.
macro_rules! served {
    ($($key:ident $min:literal ..= $max:literal: $request:ty => $function:path;)*) => {
        &[$(Served {
            key: ApiKey::$key,
            min: $min,
            max: $max,
            serve: |cluster, caller, body| serve::<$request, _>(cluster, caller, body, $function),
        }),*]
    };
}

/// All that is served. The lowest versions are those of Kafka 4; the highest those that are answered in full.
const SERVED: &[Served] = served! {
    Produce 3..=13: ProduceRequest => produce::produce;
    Fetch 4..=17: FetchRequest => fetch::fetch;
    ListOffsets 1..=9: ListOffsetsRequest => list_offsets::list_offsets;
    Metadata 0..=13: MetadataRequest => metadata::metadata;
    OffsetCommit 2..=9: OffsetCommitRequest => groups::offsets::commit;
    OffsetFetch 1..=9: OffsetFetchRequest => groups::offsets::fetch;
    FindCoordinator 0..=6: FindCoordinatorRequest => coordinator::find;
    JoinGroup 0..=9: JoinGroupRequest => groups::join::join;
    Heartbeat 0..=4: HeartbeatRequest => groups::sync::heartbeat;
    LeaveGroup 0..=5: LeaveGroupRequest => groups::leave::leave;
    SyncGroup 0..=5: SyncGroupRequest => groups::sync::sync;
    DescribeGroups 0..=6: DescribeGroupsRequest => groups::describe::describe;
    ListGroups 0..=5: ListGroupsRequest => groups::describe::list;
    DeleteGroups 0..=2: DeleteGroupsRequest => groups::delete::delete;
    OffsetDelete 0..=0: OffsetDeleteRequest => groups::offsets::delete;
    CreateTopics 2..=7: CreateTopicsRequest => admin::create_topics::create;
    DeleteTopics 1..=6: DeleteTopicsRequest => admin::topics::delete;
    CreatePartitions 0..=3: CreatePartitionsRequest => admin::topics::create_partitions;
    DeleteRecords 0..=2: DeleteRecordsRequest => admin::topics::delete_records;
    DescribeConfigs 1..=4: DescribeConfigsRequest => admin::configs::describe;
    AlterConfigs 0..=2: AlterConfigsRequest => admin::configs::replace;
    IncrementalAlterConfigs 0..=1: IncrementalAlterConfigsRequest => admin::configs::change;
    DescribeCluster 0..=1: DescribeClusterRequest => admin::brokers::describe_cluster;
    DescribeTopicPartitions 0..=0: DescribeTopicPartitionsRequest => admin::brokers::describe_topic_partitions;
    DescribeLogDirs 1..=4: DescribeLogDirsRequest => admin::brokers::describe_log_dirs;
    ElectLeaders 0..=2: ElectLeadersRequest => admin::brokers::elect_leaders;
    DescribeAcls 1..=3: DescribeAclsRequest => admin::acls::describe;
    CreateAcls 1..=3: CreateAclsRequest => admin::acls::create;
    DeleteAcls 1..=3: DeleteAclsRequest => admin::acls::delete;
    InitProducerId 0..=5: InitProducerIdRequest => transactions::init::init;
    OffsetForLeaderEpoch 2..=4: OffsetForLeaderEpochRequest => leader_epochs::find;
    AddPartitionsToTxn 0..=3: AddPartitionsToTxnRequest => transactions::add::partitions;
    AddOffsetsToTxn 0..=4: AddOffsetsToTxnRequest => transactions::add::offsets;
    EndTxn 0..=4: EndTxnRequest => transactions::end::end;
    TxnOffsetCommit 0..=4: TxnOffsetCommitRequest => transactions::offsets::commit;
    DescribeProducers 0..=0: DescribeProducersRequest => transactions::describe::producers;
    DescribeTransactions 0..=0: DescribeTransactionsRequest => transactions::describe::transactions;
    ListTransactions 0..=2: ListTransactionsRequest => transactions::describe::list;
    ConsumerGroupHeartbeat 0..=1: ConsumerGroupHeartbeatRequest => groups::heartbeat::heartbeat;
    ConsumerGroupDescribe 0..=1: ConsumerGroupDescribeRequest => groups::describe_consumer::describe;
    ApiVersions 0..=4: ApiVersionsRequest => api_versions;
};

/// Decodes a request, has it answered, and settles it.
fn serve<Q: Decodable, A: Encodable + HeaderVersion>(
    cluster: &mut Cluster,
    caller: &Caller,
    mut body: Bytes,
    function: fn(&mut Cluster, &Caller, Q) -> Answer<A>,
) {
    let Ok(request) = Q::decode(&mut body, caller.version) else { return cluster.hang_up(caller) };
    let answer = function(cluster, caller, request);
    cluster.settle(caller, &answer);
}

/// The connection that a request came on.
pub(crate) struct Origin<'a> {
    pub ticket: u64,
    pub broker: i32,
    pub host: &'a str,
}

/// Handles a request without its length. One of an unknown kind or version closes the connection, as in Kafka.
pub(crate) fn handle(cluster: &mut Cluster, origin: &Origin<'_>, mut request: Bytes) {
    let mut caller = Caller {
        ticket: origin.ticket,
        broker: origin.broker,
        key: -1,
        version: -1,
        correlation: 0,
        client_id: String::new(),
        host: origin.host.to_owned(),
    };
    if request.len() < 8 {
        return cluster.hang_up(&caller);
    }
    caller.key = (&request[..]).get_i16();
    caller.version = (&request[2..]).get_i16();
    caller.correlation = (&request[4..]).get_i32();
    let Some(served) = SERVED.iter().find(|served| served.key as i16 == caller.key) else {
        return cluster.hang_up(&caller);
    };
    if caller.version < served.min || caller.version > served.max {
        if served.key == ApiKey::ApiVersions {
            // A client of a newer Kafka learns the versions from the oldest answer (KIP-511).
            caller.version = 0;
            let answer = versions(Some(ResponseError::UnsupportedVersion));
            return cluster.settle(&caller, &Answer::Now(answer));
        }
        return cluster.hang_up(&caller);
    }
    let header_version = served.key.request_header_version(caller.version);
    let Ok(header) = RequestHeader::decode(&mut request, header_version) else { return cluster.hang_up(&caller) };
    caller.client_id = header.client_id.map(|id| id.to_string()).unwrap_or_default();
    (served.serve)(cluster, &caller, request);
}

fn api_versions(cluster: &mut Cluster, caller: &Caller, _: ApiVersionsRequest) -> Answer<ApiVersionsResponse> {
    Answer::Now(versions(cluster.fault(caller)))
}

fn versions(error: Option<ResponseError>) -> ApiVersionsResponse {
    let version = |served: &Served| {
        ApiVersion::default().with_api_key(served.key as i16).with_min_version(served.min).with_max_version(served.max)
    };
    ApiVersionsResponse::default()
        .with_error_code(error.map_or(0, |error| error.code()))
        .with_api_keys(SERVED.iter().map(version).collect())
}
