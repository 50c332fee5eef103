//! Committed offsets: `OffsetCommit`, `OffsetFetch` and `OffsetDelete`. They never expire.

use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::ResponseError;
use kafka_protocol::messages::offset_commit_response::{OffsetCommitResponsePartition, OffsetCommitResponseTopic};
use kafka_protocol::messages::offset_delete_response::{OffsetDeleteResponsePartition, OffsetDeleteResponseTopic};
use kafka_protocol::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions, OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
};
use kafka_protocol::messages::{
    OffsetCommitRequest, OffsetCommitResponse, OffsetDeleteRequest, OffsetDeleteResponse, OffsetFetchRequest,
    OffsetFetchResponse, TopicName,
};
use kafka_protocol::protocol::StrBytes;

use crate::cluster::{Answer, Caller, Cluster};
use crate::faults::Of;
use crate::groups::classic::State;
use crate::groups::{Group, Members, Pending};

/// Kafka's `offset.metadata.max.bytes`.
const METADATA_MAX: usize = 4096;
/// Since this version a request may ask for several groups.
const SEVERAL_SINCE: i16 = 8;

/// A committed offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Committed {
    pub offset: i64,
    pub leader_epoch: i32,
    pub metadata: String,
}

/// The offsets of a group, by topic and partition.
#[derive(Debug, Default)]
pub(crate) struct Offsets {
    committed: BTreeMap<(String, i32), Committed>,
    /// Those of transactions that are open.
    pending: Pending,
}

impl Offsets {
    pub fn get(&self, topic: &str, partition: i32) -> Option<&Committed> {
        self.committed.get(&(topic.to_owned(), partition))
    }

    pub fn set(&mut self, topic: &str, partition: i32, committed: Committed) {
        self.committed.insert((topic.to_owned(), partition), committed);
    }

    /// Keeps an offset until its producer's transaction ends.
    pub fn add_pending(&mut self, producer_id: i64, topic: &str, partition: i32, committed: Committed) {
        self.pending.entry(producer_id).or_default().insert((topic.to_owned(), partition), committed);
    }

    /// Commits or drops the offsets of a producer's transaction.
    pub fn end_transaction(&mut self, producer_id: i64, commits: bool) {
        let pending = self.pending.remove(&producer_id).filter(|_| commits);
        self.committed.extend(pending.unwrap_or_default());
    }

    /// Forgets the offsets of a topic.
    pub fn forget_topic(&mut self, topic: &str) {
        self.committed.retain(|(name, _), _| name != topic);
        self.pending.values_mut().for_each(|pending| pending.retain(|(name, _), _| name != topic));
    }

    fn is_pending(&self, topic: &str, partition: i32) -> bool {
        let key = (topic.to_owned(), partition);
        self.pending.values().any(|pending| pending.contains_key(&key))
    }

    fn partitions(&self) -> BTreeMap<&str, Vec<i32>> {
        let mut all: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
        let pending = self.pending.values().flat_map(BTreeMap::keys);
        let keys: BTreeSet<&(String, i32)> = self.committed.keys().chain(pending).collect();
        for (topic, partition) in keys {
            all.entry(topic).or_default().push(*partition);
        }
        all
    }
}

/// The member that commits: its id, its generation or epoch, its instance id.
pub(crate) struct Committer<'a> {
    pub member_id: &'a str,
    pub generation: i32,
    pub instance_id: Option<&'a StrBytes>,
    pub in_transaction: bool,
}

/// Checks that a member may commit, and makes the group for one that is not in a group. Kafka's `validateOffsetCommit`.
///
/// # Errors
/// `NotCoordinator`, `InvalidGroupId`, `UnknownMemberId`, `IllegalGeneration`, `FencedInstanceId`, `StaleMemberEpoch`,
/// `RebalanceInProgress`.
pub(crate) fn check(cluster: &mut Cluster, name: &str, by: &Committer<'_>) -> Result<(), ResponseError> {
    let now = cluster.now.at;
    let is_alone = by.generation < 0 && by.member_id.is_empty() && by.instance_id.is_none();
    if cluster.groups.get(name).is_none() {
        if by.generation >= 0 {
            return Err(ResponseError::IllegalGeneration);
        }
        cluster.groups.entry(name);
    }
    match &mut cluster.groups.entry(name).members {
        Members::Classic(group) if is_alone => match group.state {
            State::Empty => Ok(()),
            _ if by.in_transaction => Ok(()),
            _ => Err(ResponseError::UnknownMemberId),
        },
        Members::Classic(group) => {
            let known = group.check(by.member_id, by.instance_id, by.generation);
            known.inspect_err(|_| group.end_losses(by.member_id))?;
            if group.state == State::CompletingRebalance && !by.in_transaction {
                return Err(ResponseError::RebalanceInProgress);
            }
            if let Some(member) = group.members.get_mut(by.member_id) {
                member.session_due = now + member.session_timeout;
            }
            Ok(())
        }
        Members::Consumer(group) if is_alone && (group.members.is_empty() || by.in_transaction) => Ok(()),
        Members::Consumer(group) => group.check_member(by.member_id, by.generation).map_err(|error| {
            if by.in_transaction && error == ResponseError::StaleMemberEpoch {
                ResponseError::IllegalGeneration
            } else {
                error
            }
        }),
    }
}

/// Checks the partition and the metadata of an offset.
///
/// # Errors
/// `UnknownTopicOrPartition`, `OffsetMetadataTooLarge`.
pub(crate) fn check_offset(
    cluster: &Cluster,
    topic: &str,
    partition: i32,
    metadata: Option<&StrBytes>,
) -> Result<(), ResponseError> {
    cluster.topics.partition(topic, partition)?;
    if metadata.is_some_and(|metadata| metadata.len() > METADATA_MAX) {
        return Err(ResponseError::OffsetMetadataTooLarge);
    }
    Ok(())
}

pub(crate) fn commit(
    cluster: &mut Cluster,
    caller: &Caller,
    request: OffsetCommitRequest,
) -> Answer<OffsetCommitResponse> {
    let name = request.group_id.to_string();
    let by = Committer {
        member_id: &request.member_id,
        generation: request.generation_id_or_member_epoch,
        instance_id: request.group_instance_id.as_ref(),
        in_transaction: false,
    };
    let checked = match cluster.fault(caller) {
        Some(error) => Err(error),
        None if name.is_empty() => Err(ResponseError::InvalidGroupId),
        None => cluster
            .check_coordinator(caller, &name)
            .and_then(|()| cluster.faults.take(Of::Commit, &name).map_or(Ok(()), Err))
            .and_then(|()| check(cluster, &name, &by)),
    };
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            let metadata = asked.committed_metadata.as_ref();
            let written = checked.and_then(|()| check_offset(cluster, &topic.name, asked.partition_index, metadata));
            if written.is_ok() {
                let committed = Committed {
                    offset: asked.committed_offset,
                    leader_epoch: asked.committed_leader_epoch,
                    metadata: metadata.map(ToString::to_string).unwrap_or_default(),
                };
                cluster.groups.entry(&name).offsets.set(&topic.name, asked.partition_index, committed);
            }
            partitions.push(
                OffsetCommitResponsePartition::default()
                    .with_partition_index(asked.partition_index)
                    .with_error_code(written.err().map_or(0, |error| error.code())),
            );
        }
        topics.push(OffsetCommitResponseTopic::default().with_name(topic.name.clone()).with_partitions(partitions));
    }
    Answer::Now(OffsetCommitResponse::default().with_topics(topics))
}

pub(crate) fn fetch(
    cluster: &mut Cluster,
    caller: &Caller,
    request: OffsetFetchRequest,
) -> Answer<OffsetFetchResponse> {
    let fault = cluster.fault(caller);
    let stable = request.require_stable;
    if caller.version >= SEVERAL_SINCE {
        let groups = request.groups.iter().map(|asked| of_group(cluster, caller, asked, stable, fault));
        return Answer::Now(OffsetFetchResponse::default().with_groups(groups.collect()));
    }
    let topics = request.topics.map(|topics| {
        let topic = |topic: kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic| {
            OffsetFetchRequestTopics::default().with_name(topic.name).with_partition_indexes(topic.partition_indexes)
        };
        topics.into_iter().map(topic).collect::<Vec<_>>()
    });
    let asked = OffsetFetchRequestGroup::default().with_group_id(request.group_id).with_topics(topics.clone());
    let found = of_group(cluster, caller, &asked, stable, fault);
    let response = OffsetFetchResponse::default();
    if found.error_code != 0 && caller.version < 2 {
        // The oldest version tells an error with each partition.
        let error = ResponseError::try_from_code(found.error_code);
        let topics = topics.unwrap_or_default();
        let failed = topics.iter().map(|topic| told_before(&found_topic(None, topic, stable, error)));
        return Answer::Now(response.with_topics(failed.collect()));
    }
    Answer::Now(response.with_error_code(found.error_code).with_topics(found.topics.iter().map(told_before).collect()))
}

fn told_before(topic: &OffsetFetchResponseTopics) -> OffsetFetchResponseTopic {
    let partition = |each: &OffsetFetchResponsePartitions| {
        OffsetFetchResponsePartition::default()
            .with_partition_index(each.partition_index)
            .with_committed_offset(each.committed_offset)
            .with_committed_leader_epoch(each.committed_leader_epoch)
            .with_metadata(each.metadata.clone())
            .with_error_code(each.error_code)
    };
    let partitions = topic.partitions.iter().map(partition).collect();
    OffsetFetchResponseTopic::default().with_name(topic.name.clone()).with_partitions(partitions)
}

fn of_group(
    cluster: &Cluster,
    caller: &Caller,
    asked: &OffsetFetchRequestGroup,
    stable: bool,
    fault: Option<ResponseError>,
) -> OffsetFetchResponseGroup {
    let response = OffsetFetchResponseGroup::default().with_group_id(asked.group_id.clone());
    let group = cluster.groups.get(&asked.group_id);
    let checked = match (fault, group.map(|group| &group.members), &asked.member_id) {
        (Some(error), _, _) => Err(error),
        (None, Some(Members::Consumer(group)), Some(id)) if asked.member_epoch >= 0 => {
            group.check_member(id, asked.member_epoch)
        }
        _ => cluster.check_coordinator(caller, &asked.group_id),
    };
    if let Err(error) = checked {
        return response.with_error_code(error.code());
    }
    let topics = asked.topics.clone().unwrap_or_else(|| {
        let all = group.map(|group| group.offsets.partitions()).unwrap_or_default();
        let topic = |(name, partitions): (&str, Vec<i32>)| {
            let name = TopicName(StrBytes::from_string(name.to_owned()));
            OffsetFetchRequestTopics::default().with_name(name).with_partition_indexes(partitions)
        };
        all.into_iter().map(topic).collect()
    });
    let topics = topics.iter().map(|topic| found_topic(group, topic, stable, None)).collect();
    response.with_topics(topics)
}

fn found_topic(
    group: Option<&Group>,
    topic: &OffsetFetchRequestTopics,
    stable: bool,
    error: Option<ResponseError>,
) -> OffsetFetchResponseTopics {
    let found = |index: &i32| {
        let none = OffsetFetchResponsePartitions::default()
            .with_partition_index(*index)
            .with_committed_offset(-1)
            .with_committed_leader_epoch(-1)
            .with_metadata(Some(StrBytes::default()));
        if let Some(error) = error {
            return none.with_error_code(error.code());
        }
        let Some(group) = group else { return none };
        if stable && group.offsets.is_pending(&topic.name, *index) {
            return none.with_error_code(ResponseError::UnstableOffsetCommit.code());
        }
        match group.offsets.get(&topic.name, *index) {
            Some(committed) => none
                .with_committed_offset(committed.offset)
                .with_committed_leader_epoch(committed.leader_epoch)
                .with_metadata(Some(StrBytes::from_string(committed.metadata.clone()))),
            None => none,
        }
    };
    let partitions = topic.partition_indexes.iter().map(found).collect();
    OffsetFetchResponseTopics::default().with_name(topic.name.clone()).with_partitions(partitions)
}

pub(crate) fn delete(
    cluster: &mut Cluster,
    caller: &Caller,
    request: OffsetDeleteRequest,
) -> Answer<OffsetDeleteResponse> {
    let name = request.group_id.to_string();
    let fault = cluster.fault(caller);
    let checked = fault.map_or_else(|| cluster.check_coordinator(caller, &name), Err);
    let found = checked.and_then(|()| cluster.groups.get(&name).ok_or(ResponseError::GroupIdNotFound));
    let read: BTreeSet<String> = match found {
        Err(error) => return Answer::Now(OffsetDeleteResponse::default().with_error_code(error.code())),
        Ok(group) => subscribed(group, &request),
    };
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            let index = asked.partition_index;
            let error = if read.contains(topic.name.as_str()) {
                ResponseError::GroupSubscribedToTopic.code()
            } else if cluster.topics.partition(&topic.name, index).is_err() {
                ResponseError::UnknownTopicOrPartition.code()
            } else {
                let key = (topic.name.to_string(), index);
                cluster.groups.entry(&name).offsets.committed.remove(&key);
                0
            };
            partitions
                .push(OffsetDeleteResponsePartition::default().with_partition_index(index).with_error_code(error));
        }
        topics.push(OffsetDeleteResponseTopic::default().with_name(topic.name.clone()).with_partitions(partitions));
    }
    Answer::Now(OffsetDeleteResponse::default().with_topics(topics))
}

/// Returns those of the named topics that members read.
fn subscribed(group: &Group, request: &OffsetDeleteRequest) -> BTreeSet<String> {
    let names = request.topics.iter().map(|topic| topic.name.to_string());
    match &group.members {
        Members::Classic(group) => names.filter(|name| group.is_subscribed(name)).collect(),
        Members::Consumer(group) => names.filter(|name| group.is_subscribed(name)).collect(),
    }
}
