//! `ConsumerGroupDescribe`: the members of groups of the new protocol, with what they have and are meant to have.

use std::collections::BTreeSet;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::consumer_group_describe_response::{
    Assignment as Told, DescribedGroup, Member as ToldMember, TopicPartitions,
};
use kafka_protocol::messages::{ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use crate::cluster::{Answer, Caller, Cluster};
use crate::groups::assignors::Assignment;
use crate::groups::consumer::{ConsumerGroup, Member};
use crate::topics::Topics;

/// No authorised operations are told: the brokers have no authoriser.
const NO_OPERATIONS: i32 = i32::MIN;
/// A member of the new protocol; 0 would be one of the classic protocol.
const MEMBER_TYPE: i8 = 1;

pub(crate) fn describe(
    cluster: &mut Cluster,
    caller: &Caller,
    request: ConsumerGroupDescribeRequest,
) -> Answer<ConsumerGroupDescribeResponse> {
    let fault = cluster.fault(caller);
    let mut groups = Vec::with_capacity(request.group_ids.len());
    for id in &request.group_ids {
        let found = match fault {
            Some(error) => Err(error),
            None if id.is_empty() => Err(ResponseError::InvalidGroupId),
            None => cluster.check_coordinator(caller, id).map(|()| cluster.groups.consumer(id)),
        };
        let described = DescribedGroup::default().with_group_id(id.clone()).with_authorized_operations(NO_OPERATIONS);
        groups.push(match found {
            Ok(Some(group)) => with_group(described, group, &cluster.topics, caller.version),
            Ok(None) => described
                .with_error_code(ResponseError::GroupIdNotFound.code())
                .with_error_message(Some(StrBytes::from_string(format!("Group {} not found.", id.as_str())))),
            Err(error) => described.with_error_code(error.code()),
        });
    }
    Answer::Now(ConsumerGroupDescribeResponse::default().with_groups(groups))
}

fn with_group(described: DescribedGroup, group: &ConsumerGroup, topics: &Topics, version: i16) -> DescribedGroup {
    let none = Assignment::new();
    let target = |member: &Member| group.target.get(&member.id).unwrap_or(&none);
    let members = group.members.values().map(|member| described_member(member, target(member), topics, version));
    described
        .with_group_state(StrBytes::from_static_str(group.state()))
        .with_group_epoch(group.epoch)
        .with_assignment_epoch(group.assignment_epoch)
        .with_assignor_name(StrBytes::from_static_str(group.assignor().name()))
        .with_members(members.collect())
}

fn described_member(member: &Member, target: &Assignment, topics: &Topics, version: i16) -> ToldMember {
    let text = |text: &String| StrBytes::from_string(text.clone());
    let wanted = &member.subscription;
    let told = ToldMember::default()
        .with_member_id(text(&member.id))
        .with_instance_id(member.instance_id.as_ref().map(text))
        .with_rack_id(member.rack.as_ref().map(text))
        .with_member_epoch(member.progress.epoch)
        .with_client_id(text(&member.client_id))
        .with_client_host(StrBytes::from_string(format!("/{}", member.host)))
        .with_subscribed_topic_names(wanted.topics.iter().map(|name| TopicName(text(name))).collect())
        .with_subscribed_topic_regex(wanted.pattern.as_ref().map(|(pattern, _)| text(pattern)))
        .with_assignment(partitions(&member.progress.assigned, topics))
        .with_target_assignment(partitions(target, topics));
    if version > 0 { told.with_member_type(MEMBER_TYPE) } else { told }
}

fn partitions(assignment: &Assignment, topics: &Topics) -> Told {
    let topic = |(id, partitions): (&uuid::Uuid, &BTreeSet<i32>)| {
        let name = topics.name_of(*id)?.to_owned();
        let told =
            TopicPartitions::default().with_topic_id(*id).with_topic_name(TopicName(StrBytes::from_string(name)));
        Some(told.with_partitions(partitions.iter().copied().collect()))
    };
    Told::default().with_topic_partitions(assignment.iter().filter_map(topic).collect())
}
