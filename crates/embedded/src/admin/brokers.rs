//! `DescribeCluster`, `DescribeTopicPartitions`, `DescribeLogDirs` and `ElectLeaders`.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use kafka_protocol::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use kafka_protocol::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use kafka_protocol::messages::elect_leaders_response::{PartitionResult, ReplicaElectionResult};
use kafka_protocol::messages::{
    BrokerId, DescribeClusterRequest, DescribeClusterResponse, DescribeLogDirsRequest, DescribeLogDirsResponse,
    DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, ElectLeadersRequest, ElectLeadersResponse,
    TopicName,
};
use kafka_protocol::protocol::StrBytes;

use crate::cluster::{Answer, Caller, Cluster, HOST};
use crate::topics::Partition;

/// No authorised operations are told: the brokers have no authoriser.
const NO_OPERATIONS: i32 = i32::MIN;
const BROKERS_ENDPOINT: i8 = 1;
const PARTITIONS_MAX: usize = 2000;
const PREFERRED: i8 = 0;
const UNCLEAN: i8 = 1;

pub(crate) fn describe_cluster(
    cluster: &mut Cluster,
    caller: &Caller,
    request: DescribeClusterRequest,
) -> Answer<DescribeClusterResponse> {
    let fault = match request.endpoint_type {
        BROKERS_ENDPOINT => cluster.fault(caller),
        _ => Some(ResponseError::MismatchedEndpointType),
    };
    let up = cluster.brokers.iter().filter(|broker| broker.is_up);
    let told = up.map(|broker| {
        DescribeClusterBroker::default()
            .with_broker_id(BrokerId(broker.id))
            .with_host(StrBytes::from_static_str(HOST))
            .with_port(i32::from(broker.port))
    });
    Answer::Now(
        DescribeClusterResponse::default()
            .with_error_code(fault.map_or(0, |error| error.code()))
            .with_cluster_id(StrBytes::from_string(cluster.id.clone()))
            .with_controller_id(BrokerId(cluster.up().first().copied().unwrap_or(-1)))
            .with_brokers(told.collect())
            .with_cluster_authorized_operations(NO_OPERATIONS),
    )
}

pub(crate) fn describe_topic_partitions(
    cluster: &mut Cluster,
    caller: &Caller,
    request: DescribeTopicPartitionsRequest,
) -> Answer<DescribeTopicPartitionsResponse> {
    let fault = cluster.fault(caller);
    let mut names: Vec<String> = request.topics.iter().map(|topic| topic.name.to_string()).collect();
    if names.is_empty() {
        names = cluster.topics.iter().map(|(name, _)| name.to_owned()).collect();
    }
    names.sort();
    names.dedup();
    let begins = request.cursor.as_ref().map(|cursor| (cursor.topic_name.to_string(), cursor.partition_index));
    let mut left = usize::try_from(request.response_partition_limit).unwrap_or(0).clamp(1, PARTITIONS_MAX);
    let mut response = DescribeTopicPartitionsResponse::default();
    for name in names {
        let from = match &begins {
            Some((topic, _)) if name < *topic => continue,
            Some((topic, partition)) if name == *topic => usize::try_from(*partition).unwrap_or(0),
            _ => 0,
        };
        let told = DescribeTopicPartitionsResponseTopic::default()
            .with_name(Some(TopicName(StrBytes::from_string(name.clone()))))
            .with_topic_authorized_operations(NO_OPERATIONS);
        let found = fault.map_or_else(|| cluster.topics.get(&name).ok_or(ResponseError::UnknownTopicOrPartition), Err);
        let topic = match found {
            Ok(topic) => topic,
            Err(error) => {
                response.topics.push(told.with_error_code(error.code()));
                continue;
            }
        };
        let partitions = topic.partitions.iter().enumerate().skip(from).take(left);
        let partitions: Vec<_> = partitions.map(|(index, each)| described(cluster, index, each)).collect();
        left -= partitions.len();
        let next = from + partitions.len();
        response.topics.push(told.with_topic_id(topic.id).with_partitions(partitions));
        if next < topic.partitions.len() || left == 0 {
            let name = TopicName(StrBytes::from_string(name));
            response.next_cursor = Some(Cursor::default().with_topic_name(name).with_partition_index(next as i32));
            break;
        }
    }
    Answer::Now(response)
}

fn described(cluster: &Cluster, index: usize, partition: &Partition) -> DescribeTopicPartitionsResponsePartition {
    let is_up = |id: &i32| cluster.broker(*id).is_some_and(|broker| broker.is_up);
    let ids = |wanted: &dyn Fn(&i32) -> bool| {
        partition.replicas.iter().filter(|id| wanted(id)).map(|id| BrokerId(*id)).collect::<Vec<_>>()
    };
    let error = if partition.leader.is_some() { 0 } else { ResponseError::LeaderNotAvailable.code() };
    DescribeTopicPartitionsResponsePartition::default()
        .with_error_code(error)
        .with_partition_index(index as i32)
        .with_leader_id(BrokerId(partition.leader.unwrap_or(-1)))
        .with_leader_epoch(partition.leader_epoch)
        .with_replica_nodes(ids(&|_| true))
        .with_isr_nodes(ids(&is_up))
        .with_offline_replicas(ids(&|id| !is_up(id)))
        // There are none, as in Apache Kafka. Its Java client takes no null for that.
        .with_eligible_leader_replicas(Some(Vec::new()))
        .with_last_known_elr(Some(Vec::new()))
}

pub(crate) fn describe_log_dirs(
    cluster: &mut Cluster,
    caller: &Caller,
    request: DescribeLogDirsRequest,
) -> Answer<DescribeLogDirsResponse> {
    let fault = cluster.fault(caller);
    let is_wanted = |name: &str, index: usize| {
        let named = |topic: &kafka_protocol::messages::describe_log_dirs_request::DescribableLogDirTopic| {
            topic.topic.as_str() == name && topic.partitions.contains(&(index as i32))
        };
        request.topics.as_ref().is_none_or(|topics| topics.iter().any(named))
    };
    let topic = |(name, topic): (&str, &crate::topics::Topic)| {
        let own = topic.partitions.iter().enumerate();
        let own = own.filter(|(index, each)| each.replicas.contains(&caller.broker) && is_wanted(name, *index));
        let told = own.map(|(index, each)| {
            let size = each.log.size() as i64;
            DescribeLogDirsPartition::default().with_partition_index(index as i32).with_partition_size(size)
        });
        let name = TopicName(StrBytes::from_string(name.to_owned()));
        DescribeLogDirsTopic::default().with_name(name).with_partitions(told.collect())
    };
    let topics = cluster.topics.iter().map(topic).filter(|topic| !topic.partitions.is_empty()).collect();
    let result = DescribeLogDirsResult::default()
        .with_log_dir(StrBytes::from_static_str("/memory"))
        .with_topics(topics)
        .with_total_bytes(-1)
        .with_usable_bytes(-1);
    Answer::Now(
        DescribeLogDirsResponse::default()
            .with_error_code(fault.filter(|_| caller.version >= 3).map_or(0, |error| error.code()))
            .with_results(vec![result.with_error_code(fault.map_or(0, |error| error.code()))]),
    )
}

pub(crate) fn elect_leaders(
    cluster: &mut Cluster,
    caller: &Caller,
    request: ElectLeadersRequest,
) -> Answer<ElectLeadersResponse> {
    let fault = match request.election_type {
        PREFERRED | UNCLEAN => cluster.fault(caller),
        _ => Some(ResponseError::InvalidRequest),
    };
    let all = || {
        let topic = |(name, topic): (&str, &crate::topics::Topic)| {
            (name.to_owned(), (0..topic.partitions.len() as i32).collect())
        };
        cluster.topics.iter().map(topic).collect::<Vec<(String, Vec<i32>)>>()
    };
    let asked = match &request.topic_partitions {
        Some(topics) => topics.iter().map(|topic| (topic.topic.to_string(), topic.partitions.clone())).collect(),
        None => all(),
    };
    let mut results = Vec::with_capacity(asked.len());
    for (topic, partitions) in asked {
        let mut told = Vec::with_capacity(partitions.len());
        for index in partitions {
            let elected = fault.map_or_else(|| elect(cluster, &topic, index, request.election_type), Err);
            let result = PartitionResult::default().with_partition_id(index);
            match elected {
                // Who asks for all partitions is told of those that changed.
                Err(ResponseError::ElectionNotNeeded) if request.topic_partitions.is_none() => {}
                Ok(()) => told.push(result),
                Err(error) => {
                    let text = StrBytes::from_static_str(match error {
                        ResponseError::ElectionNotNeeded => "Leader election not needed for topic partition.",
                        ResponseError::PreferredLeaderNotAvailable => "The preferred leader was not available.",
                        ResponseError::UnknownTopicOrPartition => "No such topic or partition.",
                        _ => "The leaders could not be elected.",
                    });
                    told.push(result.with_error_code(error.code()).with_error_message(Some(text)));
                }
            }
        }
        let topic = TopicName(StrBytes::from_string(topic));
        results.push(ReplicaElectionResult::default().with_topic(topic).with_partition_result(told));
    }
    let error = fault.filter(|_| caller.version >= 1).map_or(0, |error| error.code());
    Answer::Now(ElectLeadersResponse::default().with_error_code(error).with_replica_election_results(results))
}

fn elect(cluster: &mut Cluster, topic: &str, index: i32, kind: i8) -> Result<(), ResponseError> {
    let up = cluster.up();
    let partition = cluster.topics.partition_mut(topic, index)?;
    if kind == UNCLEAN {
        // Replicas never lag, so that a leader is elected as soon as one is up.
        let error = if partition.leader.is_some() {
            ResponseError::ElectionNotNeeded
        } else {
            ResponseError::EligibleLeadersNotAvailable
        };
        return Err(error);
    }
    let preferred = partition.replicas.first().copied();
    if partition.leader == preferred {
        return Err(ResponseError::ElectionNotNeeded);
    }
    if !preferred.is_some_and(|broker| up.contains(&broker)) {
        return Err(ResponseError::PreferredLeaderNotAvailable);
    }
    partition.leader = preferred;
    partition.leader_epoch += 1;
    Ok(())
}
