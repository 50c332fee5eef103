//! Partitions that a test takes from members of a group: revoked in a rebalance, or lost with their member.
//!
//! A revocation of the classic protocol: 1. all members join again; 2. the member's assignment lacks the partition,
//! unless it has given the partition up before it joined, as members without cooperative rebalances do; 3. it joins
//! without the partition, which is then assigned again.

use std::sync::Arc;
use std::time::Instant;

use bytes::{Buf, Bytes, BytesMut};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::{ConsumerProtocolAssignment, ConsumerProtocolSubscription};
use kafka_protocol::protocol::{Decodable, Encodable};

use crate::cluster::Cluster;
use crate::faults::Happened;
use crate::groups::Members;
use crate::groups::classic::{self, ClassicGroup, Due, State};
use crate::groups::consumer::ConsumerGroup;
use crate::topics::Topics;

/// The way in which a member is parted from a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Revoke,
    Lose,
}

/// A partition that is to be taken from the member that has it.
#[derive(Debug)]
pub(crate) struct Withdrawal {
    pub kind: Kind,
    pub topic: String,
    pub partition: i32,
    /// The member that had the partition when this began; before, a member must get the partition.
    pub member: Option<String>,
    pub happened: Happened,
}

impl Withdrawal {
    fn is_under_way(&self, kind: Kind) -> bool {
        self.kind == kind && self.member.is_some()
    }
}

/// Takes a partition from the member of a group that has it, or from the first that gets it.
///
/// # Errors
/// A text: there is no such group.
pub(crate) fn begin(
    cluster: &mut Cluster,
    name: &str,
    kind: Kind,
    (topic, partition): (String, i32),
) -> Result<Happened, String> {
    let happened = Happened::default();
    let withdrawal = Withdrawal { kind, topic, partition, member: None, happened: Arc::clone(&happened) };
    let Some(group) = cluster.groups.get_mut(name) else { return Err(format!("there is no group {name:?}")) };
    if let Members::Consumer(group) = &mut group.members {
        group.withdrawals.push(withdrawal);
        group.refresh(&cluster.topics);
        return Ok(happened);
    }
    let now = cluster.now.at;
    let begun = classic::change(cluster, name, false, |group, due| {
        group.withdrawals.push(withdrawal);
        group.begin_withdrawals(now, due);
        Ok(())
    });
    debug_assert!(begun.is_ok(), "the group was there");
    Ok(happened)
}

impl ClassicGroup {
    /// Begins the withdrawals of the partitions that members have by now.
    pub fn begin_withdrawals(&mut self, now: Instant, due: &mut Vec<Due>) {
        if self.state != State::Stable {
            return;
        }
        let mut waiting = std::mem::take(&mut self.withdrawals);
        let mut has_begun = false;
        for each in waiting.iter_mut().filter(|each| each.member.is_none()) {
            let mut members = self.members.values();
            let owner = members.find(|member| has(&member.assignment, &each.topic, each.partition));
            each.member = owner.map(|member| member.id.clone());
            has_begun |= each.member.is_some();
        }
        let lost = waiting.iter().filter(|each| each.is_under_way(Kind::Lose));
        for id in lost.filter_map(|each| each.member.clone()) {
            self.remove(&id, ResponseError::UnknownMemberId, due);
        }
        self.withdrawals = waiting;
        if has_begun {
            self.rebalance_without(now, due);
        }
    }

    /// Keeps the partitions that are being revoked from being assigned to their members.
    pub fn withhold(&mut self) {
        for each in self.withdrawals.iter().filter(|each| each.is_under_way(Kind::Revoke)) {
            if let Some(member) = each.member.as_ref().and_then(|id| self.members.get_mut(id)) {
                member.assignment = without(&member.assignment, &each.topic, each.partition);
            }
        }
    }

    /// Ends the revocations whose members have joined without the partition, or have gone.
    pub fn end_revocations(&mut self) {
        let protocol = self.protocol.clone().unwrap_or_default();
        let members = &self.members;
        self.withdrawals.retain(|each| {
            let member = each.member.as_ref().and_then(|id| members.get(id));
            let owns = member.is_some_and(|member| {
                member.joining.is_none() || owns(&member.metadata(&protocol), &each.topic, each.partition)
            });
            if each.is_under_way(Kind::Revoke) && !owns {
                each.happened.complete(());
                return false;
            }
            true
        });
    }

    /// Ends the losses of a member that was told that it is none any more.
    pub fn end_losses(&mut self, member_id: &str) {
        end_losses(&mut self.withdrawals, member_id);
    }
}

impl ConsumerGroup {
    /// Begins the withdrawals of partitions that members have told they have, and ends the revocations of those that
    /// no member has any more. Each changes the group's epoch.
    pub fn pursue_withdrawals(&mut self, topics: &Topics) {
        let mut left = std::mem::take(&mut self.withdrawals);
        for each in left.iter_mut().filter(|each| each.member.is_none()) {
            let Some(id) = topics.get(&each.topic).map(|topic| topic.id) else { continue };
            let mut members = self.members.values();
            let owner = members.find(|member| {
                let lists = [&member.owned, &member.progress.assigned];
                lists.iter().all(|list| list.get(&id).is_some_and(|list| list.contains(&each.partition)))
            });
            each.member = owner.map(|member| member.id.clone());
            match &each.member {
                Some(id) if each.kind == Kind::Lose => drop(self.remove(id)),
                Some(_) => self.epoch += 1,
                None => {}
            }
        }
        left.retain(|each| {
            let is_over = each.is_under_way(Kind::Revoke) && !self.has(topics, &each.topic, each.partition);
            if is_over {
                self.epoch += 1;
                each.happened.complete(());
            }
            !is_over
        });
        self.withdrawals = left;
    }

    /// Keeps the partitions that are being revoked from being assigned.
    pub fn withhold(&mut self, topics: &Topics) {
        for each in self.withdrawals.iter().filter(|each| each.is_under_way(Kind::Revoke)) {
            let Some(id) = topics.get(&each.topic).map(|topic| topic.id) else { continue };
            for target in self.target.values_mut() {
                if let Some(partitions) = target.get_mut(&id) {
                    partitions.remove(&each.partition);
                }
            }
        }
    }

    /// Ends the losses of a member that was told that it is none any more.
    pub fn end_losses(&mut self, member_id: &str) {
        end_losses(&mut self.withdrawals, member_id);
    }

    fn has(&self, topics: &Topics, topic: &str, partition: i32) -> bool {
        let Some(id) = topics.get(topic).map(|topic| topic.id) else { return false };
        let mut lists = self.members.values().flat_map(|member| [&member.progress.assigned, &member.progress.revoking]);
        lists.any(|list| list.get(&id).is_some_and(|list| list.contains(&partition)))
    }
}

fn end_losses(withdrawals: &mut Vec<Withdrawal>, member_id: &str) {
    withdrawals.retain(|each| {
        let is_over = each.kind == Kind::Lose && each.member.as_deref() == Some(member_id);
        if is_over {
            each.happened.complete(());
        }
        !is_over
    });
}

/// Reads an assignment, and its version.
fn read_assignment(bytes: &Bytes) -> Option<(i16, ConsumerProtocolAssignment)> {
    let mut left = bytes.clone();
    let version = left.try_get_i16().ok()?;
    Some((version, ConsumerProtocolAssignment::decode(&mut left, version).ok()?))
}

/// Returns whether a partition is in an assignment.
fn has(assignment: &Bytes, topic: &str, partition: i32) -> bool {
    let assigned = read_assignment(assignment).map(|(_, read)| read.assigned_partitions).unwrap_or_default();
    assigned.iter().any(|each| each.topic.as_str() == topic && each.partitions.contains(&partition))
}

/// Returns an assignment without a partition.
fn without(assignment: &Bytes, topic: &str, partition: i32) -> Bytes {
    let Some((version, mut read)) = read_assignment(assignment) else { return assignment.clone() };
    for each in read.assigned_partitions.iter_mut().filter(|each| each.topic.as_str() == topic) {
        each.partitions.retain(|each| *each != partition);
    }
    let mut bytes = BytesMut::new();
    bytes.extend_from_slice(&version.to_be_bytes());
    match read.encode(&mut bytes, version) {
        Ok(()) => bytes.freeze(),
        Err(_) => assignment.clone(),
    }
}

/// Returns whether a member says in its subscription that it has a partition.
fn owns(subscription: &Bytes, topic: &str, partition: i32) -> bool {
    let mut left = subscription.clone();
    let Ok(version) = left.try_get_i16() else { return false };
    let read = ConsumerProtocolSubscription::decode(&mut left, version);
    let owned = read.map(|read| read.owned_partitions).unwrap_or_default();
    owned.iter().any(|each| each.topic.as_str() == topic && each.partitions.contains(&partition))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kafka_protocol::messages::consumer_protocol_assignment::TopicPartition as Given;
    use kafka_protocol::messages::consumer_protocol_subscription::TopicPartition as Owned;
    use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
    use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
    use kafka_protocol::messages::{
        GroupId, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, SyncGroupRequest, TopicName,
    };
    use kafka_protocol::protocol::StrBytes;

    use super::*;
    use crate::faults::{Fault, inject};
    use crate::testing::Driven;

    const JOIN: i16 = 3;
    const SYNC: i16 = 3;
    const BEAT: i16 = 3;

    fn group() -> GroupId {
        GroupId(StrBytes::from_static_str("g"))
    }

    fn orders() -> TopicName {
        TopicName(StrBytes::from_static_str("orders"))
    }

    fn encoded(message: &impl Encodable) -> Bytes {
        let mut bytes = BytesMut::new();
        bytes.extend_from_slice(&1_i16.to_be_bytes());
        message.encode(&mut bytes, 1).expect("a message of this version");
        bytes.freeze()
    }

    fn subscription(owned: &[i32]) -> Bytes {
        let owned = Owned::default().with_topic(orders()).with_partitions(owned.to_vec());
        let topics = vec![StrBytes::from_static_str("orders")];
        encoded(&ConsumerProtocolSubscription::default().with_topics(topics).with_owned_partitions(vec![owned]))
    }

    /// A member of a classic group that is alone, and assigns to itself.
    struct Alone {
        driven: Driven,
        id: StrBytes,
        generation: i32,
    }

    impl Alone {
        fn new() -> Self {
            let mut alone = Self { driven: Driven::new(1), id: StrBytes::default(), generation: 0 };
            alone.rejoin(&[]);
            alone
        }

        fn join(&mut self, owned: &[i32]) -> JoinGroupResponse {
            let protocol = JoinGroupRequestProtocol::default()
                .with_name(StrBytes::from_static_str("any"))
                .with_metadata(subscription(owned));
            let request = JoinGroupRequest::default()
                .with_group_id(group())
                .with_member_id(self.id.clone())
                .with_protocol_type(StrBytes::from_static_str("consumer"))
                .with_session_timeout_ms(10_000)
                .with_rebalance_timeout_ms(10_000)
                .with_protocols(vec![protocol]);
            self.driven.ask(JOIN, &request)
        }

        /// Joins with the partitions that it has, assigns both to itself, and returns those that it got.
        fn rejoin(&mut self, owned: &[i32]) -> Vec<i32> {
            let joined = self.join(owned);
            assert_eq!(joined.error_code, 0);
            (self.id, self.generation) = (joined.member_id, joined.generation_id);
            let given = Given::default().with_topic(orders()).with_partitions(vec![0, 1]);
            let assignment = encoded(&ConsumerProtocolAssignment::default().with_assigned_partitions(vec![given]));
            let own = SyncGroupRequestAssignment::default().with_member_id(self.id.clone()).with_assignment(assignment);
            let request = SyncGroupRequest::default()
                .with_group_id(group())
                .with_member_id(self.id.clone())
                .with_generation_id(self.generation)
                .with_assignments(vec![own]);
            let got = self.driven.ask(SYNC, &request).assignment;
            (0..2).filter(|index| has(&got, "orders", *index)).collect()
        }

        fn beat(&mut self) -> i16 {
            let request = HeartbeatRequest::default()
                .with_group_id(group())
                .with_member_id(self.id.clone())
                .with_generation_id(self.generation);
            self.driven.ask(BEAT, &request).error_code
        }

        fn inject(&mut self, fault: fn(String, (String, i32)) -> Fault) -> Happened {
            let fault = fault("g".to_owned(), ("orders".to_owned(), 1));
            inject(&mut self.driven.cluster, fault).expect("the group has it")
        }
    }

    #[test]
    fn a_cooperative_member_gives_a_partition_up_and_gets_it_again() {
        let mut alone = Alone::new();
        let revoked = alone.inject(Fault::Revoke);
        assert_eq!(alone.beat(), ResponseError::RebalanceInProgress.code());
        assert_eq!(alone.rejoin(&[0, 1]), [0], "the partition is withheld");
        assert!(!revoked.is_done());
        assert_eq!(alone.rejoin(&[0]), [0, 1], "it may have the partition again");
        assert!(revoked.is_done());
        assert_eq!(alone.beat(), 0);
    }

    #[test]
    fn a_member_that_gives_up_everything_before_it_joins_has_it_revoked_then() {
        let mut alone = Alone::new();
        let revoked = alone.inject(Fault::Revoke);
        assert_eq!(alone.beat(), ResponseError::RebalanceInProgress.code());
        assert_eq!(alone.rejoin(&[]), [0, 1]);
        assert!(revoked.is_done());
    }

    #[test]
    fn a_revocation_waits_for_a_member_that_has_the_partition() {
        let mut alone = Alone::new();
        let (first, second) = (alone.inject(Fault::Revoke), alone.inject(Fault::Revoke));
        alone.rejoin(&[0, 1]);
        alone.rejoin(&[0]);
        assert!(first.is_done() && !second.is_done());
        assert_eq!(alone.beat(), ResponseError::RebalanceInProgress.code(), "the second has begun");
        alone.rejoin(&[]);
        assert!(second.is_done());
    }

    #[test]
    fn a_member_that_is_removed_has_lost_its_partitions_when_it_was_told() {
        let mut alone = Alone::new();
        let lost = alone.inject(Fault::Lose);
        assert!(!lost.is_done());
        assert_eq!(alone.beat(), ResponseError::UnknownMemberId.code());
        assert!(lost.is_done());
        alone.id = StrBytes::default();
        assert_eq!(alone.rejoin(&[]), [0, 1]);
        alone.driven.pass(Duration::from_millis(9_999));
        assert_eq!(alone.beat(), 0);
    }

    #[test]
    fn a_group_or_a_partition_that_does_not_exist_has_no_faults() {
        let mut driven = Driven::new(1);
        let mut error = |group: &str, topic: &str, partition| {
            let fault = Fault::Revoke(group.to_owned(), (topic.to_owned(), partition));
            inject(&mut driven.cluster, fault).expect_err("it does not exist")
        };
        assert_eq!(error("none", "orders", 0), "there is no group \"none\"");
        assert_eq!(error("none", "orders", 2), "there is no partition 2 of topic \"orders\": it has 2");
        assert_eq!(error("none", "other", 0), "there is no topic \"other\"");
    }
}
