//! Metadata: the brokers, the topics and who leads their partitions.

use std::collections::BTreeMap;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{BrokerId, MetadataRequest, MetadataResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use crate::cluster::{Answer, Broker, Caller, Cluster, HOST};
use crate::topics::{Partition, Topic, is_topic_name};

/// No authorised operations are told: the brokers have no authoriser.
const NO_OPERATIONS: i32 = i32::MIN;

pub(crate) fn metadata(cluster: &mut Cluster, caller: &Caller, request: MetadataRequest) -> Answer<MetadataResponse> {
    let fault = cluster.fault(caller);
    let creates = caller.version < 4 || request.allow_auto_topic_creation;
    // The oldest version asks for all topics by naming none.
    let topics = match request.topics {
        Some(topics) if caller.version > 0 || !topics.is_empty() => {
            topics.iter().map(|asked| asked_topic(cluster, asked, creates, fault)).collect()
        }
        _ => cluster.topics.iter().map(|(name, topic)| known_topic(cluster, name, topic)).collect(),
    };
    let up = cluster.brokers.iter().filter(|broker| broker.is_up);
    let response = MetadataResponse::default()
        .with_brokers(up.map(known_broker).collect())
        .with_cluster_id(Some(StrBytes::from_string(cluster.id.clone())))
        .with_controller_id(BrokerId(cluster.up().first().copied().unwrap_or(-1)))
        .with_topics(topics);
    Answer::Now(response)
}

fn known_broker(broker: &Broker) -> MetadataResponseBroker {
    MetadataResponseBroker::default()
        .with_node_id(BrokerId(broker.id))
        .with_host(StrBytes::from_static_str(HOST))
        .with_port(i32::from(broker.port))
}

fn asked_topic(
    cluster: &mut Cluster,
    asked: &MetadataRequestTopic,
    creates: bool,
    fault: Option<ResponseError>,
) -> MetadataResponseTopic {
    let refused = |error: ResponseError| {
        MetadataResponseTopic::default()
            .with_name(asked.name.clone())
            .with_topic_id(asked.topic_id)
            .with_error_code(error.code())
            .with_topic_authorized_operations(NO_OPERATIONS)
    };
    if let Some(error) = fault {
        return refused(error);
    }
    let Some(name) = asked.name.as_ref() else {
        let name = cluster.topics.name_of(asked.topic_id).map(str::to_owned);
        let Some(name) = name else { return refused(ResponseError::UnknownTopicId) };
        return known_topic(cluster, &name, cluster.topics.get(&name).expect("an id has a topic"));
    };
    if !is_topic_name(name) {
        return refused(ResponseError::InvalidTopicException);
    }
    if cluster.topics.get(name).is_none() {
        if !creates {
            return refused(ResponseError::UnknownTopicOrPartition);
        }
        let replicas = cluster.spread(0, 1, 1);
        cluster.topics.create(name, replicas, BTreeMap::new());
    }
    known_topic(cluster, name, cluster.topics.get(name).expect("it exists or was created"))
}

fn known_topic(cluster: &Cluster, name: &str, topic: &Topic) -> MetadataResponseTopic {
    let partitions = topic.partitions.iter().enumerate();
    MetadataResponseTopic::default()
        .with_name(Some(TopicName(StrBytes::from_string(name.to_owned()))))
        .with_topic_id(topic.id)
        .with_is_internal(name.starts_with("__"))
        .with_topic_authorized_operations(NO_OPERATIONS)
        .with_partitions(partitions.map(|(index, partition)| known_partition(cluster, index, partition)).collect())
}

fn known_partition(cluster: &Cluster, index: usize, partition: &Partition) -> MetadataResponsePartition {
    let is_up = |id: &i32| cluster.broker(*id).is_some_and(|broker| broker.is_up);
    let ids = |wanted: &dyn Fn(&i32) -> bool| {
        partition.replicas.iter().filter(|id| wanted(id)).map(|id| BrokerId(*id)).collect::<Vec<_>>()
    };
    let error = if partition.leader.is_some() { 0 } else { ResponseError::LeaderNotAvailable.code() };
    MetadataResponsePartition::default()
        .with_error_code(error)
        .with_partition_index(index as i32)
        .with_leader_id(BrokerId(partition.leader.unwrap_or(-1)))
        .with_leader_epoch(partition.leader_epoch)
        .with_replica_nodes(ids(&|_| true))
        .with_isr_nodes(ids(&is_up))
        .with_offline_replicas(ids(&|id| !is_up(id)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Driven;

    fn named(name: &str) -> MetadataRequest {
        let name = TopicName(StrBytes::from_string(name.to_owned()));
        MetadataRequest::default().with_topics(Some(vec![MetadataRequestTopic::default().with_name(Some(name))]))
    }

    #[test]
    fn every_version_tells_brokers_topics_and_leaders() {
        for version in 0..=13 {
            let mut driven = Driven::new(3);
            let response = driven.ask(version, &named("orders"));
            let ports: Vec<i32> = response.brokers.iter().map(|broker| broker.port).collect();
            assert_eq!(ports, [9000, 9001, 9002], "version {version}");
            let leaders: Vec<i32> = response.topics[0].partitions.iter().map(|each| each.leader_id.0).collect();
            assert_eq!(leaders, [1, 2], "version {version}");
        }
    }

    #[test]
    fn all_topics_are_told_where_none_is_named() {
        let mut driven = Driven::new(1);
        let all = |response: MetadataResponse| response.topics.len();
        assert_eq!(all(driven.ask(9, &MetadataRequest::default().with_topics(None))), 1);
        assert_eq!(all(driven.ask(9, &MetadataRequest::default().with_topics(Some(Vec::new())))), 0);
        assert_eq!(all(driven.ask(0, &MetadataRequest::default().with_topics(Some(Vec::new())))), 1);
    }

    #[test]
    fn an_unknown_topic_is_created_only_where_the_client_allows_it() {
        let mut driven = Driven::new(1);
        let error = |response: MetadataResponse| response.topics[0].error_code;
        let refused = error(driven.ask(9, &named("new").with_allow_auto_topic_creation(false)));
        assert_eq!(refused, ResponseError::UnknownTopicOrPartition.code());
        assert_eq!(error(driven.ask(9, &named("new").with_allow_auto_topic_creation(true))), 0);
        let wrong = error(driven.ask(9, &named("no/name").with_allow_auto_topic_creation(true)));
        assert_eq!(wrong, ResponseError::InvalidTopicException.code());
    }

    #[test]
    fn a_broker_that_is_down_leads_nothing() {
        let mut driven = Driven::new(2);
        driven.cluster.topics.create("kept", vec![vec![2, 1]], BTreeMap::new());
        driven.cluster.set_up(2, false);
        let response = driven.ask(9, &named("kept"));
        let partition = &response.topics[0].partitions[0];
        assert_eq!((partition.leader_id, partition.leader_epoch), (BrokerId(1), 1));
        assert_eq!((partition.isr_nodes.len(), partition.offline_replicas.len()), (1, 1));
        let response = driven.ask(9, &named("orders"));
        let partition = &response.topics[0].partitions[1];
        assert_eq!(
            (partition.leader_id, partition.error_code),
            (BrokerId(-1), ResponseError::LeaderNotAvailable.code())
        );
        driven.cluster.set_up(2, true);
        let response = driven.ask(9, &named("orders"));
        assert_eq!(response.topics[0].partitions[1].leader_id, BrokerId(2));
    }
}
