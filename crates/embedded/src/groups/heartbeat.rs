//! `ConsumerGroupHeartbeat`: members join, tell what they have, learn what they are meant to have, and leave (KIP-848).

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::consumer_group_heartbeat_response::{Assignment as Told, TopicPartitions};
use kafka_protocol::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};
use kafka_protocol::protocol::StrBytes;
use regex_lite::Regex;

use crate::cluster::{Answer, Caller, Cluster, Timer};
use crate::groups::GroupTimer;
use crate::groups::assignors::{Assignment, Assignor};
use crate::groups::consumer::{
    ConsumerGroup, HEARTBEAT_INTERVAL_MS, LEFT_FOR_A_WHILE, Member, SESSION_TIMEOUT, Subscription,
};
use crate::groups::reconciliation::{self, Progress, Step};

const JOINS: i32 = 0;
const LEAVES: i32 = -1;
/// Since this version members choose their ids.
const OWN_IDS_SINCE: i16 = 1;

/// An error and its text.
type Refusal = (ResponseError, String);

fn refuse<T>(error: ResponseError, text: impl Into<String>) -> Result<T, Refusal> {
    Err((error, text.into()))
}

pub(crate) fn heartbeat(
    cluster: &mut Cluster,
    caller: &Caller,
    request: ConsumerGroupHeartbeatRequest,
) -> Answer<ConsumerGroupHeartbeatResponse> {
    let answered = match cluster.fault(caller) {
        Some(error) => refuse(error, ""),
        None => beat(cluster, caller, &request),
    };
    Answer::Now(answered.unwrap_or_else(|(error, text)| {
        ConsumerGroupHeartbeatResponse::default()
            .with_error_code(error.code())
            .with_error_message(Some(StrBytes::from_string(text)))
    }))
}

fn beat(
    cluster: &mut Cluster,
    caller: &Caller,
    request: &ConsumerGroupHeartbeatRequest,
) -> Result<ConsumerGroupHeartbeatResponse, Refusal> {
    check(caller, request)?;
    let name = request.group_id.to_string();
    cluster.check_coordinator(caller, &name).map_err(|error| (error, String::new()))?;
    if request.member_epoch < JOINS {
        return leave(cluster, &name, request);
    }
    let creates = request.member_epoch == JOINS;
    let group = cluster.groups.consumer_mut(&name, creates);
    let group = group.map_err(|error| (error, format!("Group {name} is not a consumer group.")))?;
    let entered = enter(group, caller, request, cluster.now.at);
    let member_id = entered.inspect_err(|_| group.end_losses(&request.member_id))?;
    let subscription = subscription(request, &group.members[&member_id].subscription)?;
    let member = group.members.get_mut(&member_id).expect("it has entered");
    let has_timer = member.session_due > cluster.now.at;
    member.session_due = cluster.now.at + SESSION_TIMEOUT;
    if let Some(timeout) =
        u64::try_from(request.rebalance_timeout_ms).ok().filter(|_| request.rebalance_timeout_ms >= 0)
    {
        member.rebalance_timeout = Duration::from_millis(timeout);
    }
    if let Some(rack) = &request.rack_id {
        member.rack = Some(rack.to_string());
    }
    member.client_id.clone_from(&caller.client_id);
    member.host.clone_from(&caller.host);
    if !subscription.is_same(&member.subscription) {
        member.subscription = subscription;
        group.epoch += 1;
    }
    let before = group.members[&member_id].progress.clone();
    group.refresh(&cluster.topics);
    let owned = request.topic_partitions.as_ref().map(|owned| {
        let of_topic = |each: &kafka_protocol::messages::consumer_group_heartbeat_request::TopicPartitions| {
            (each.topic_id, each.partitions.iter().copied().collect::<BTreeSet<i32>>())
        };
        owned.iter().map(of_topic).collect::<Assignment>()
    });
    group.advance(&member_id, owned.as_ref());
    if let (Some(owned), Some(member)) = (owned, group.members.get_mut(&member_id)) {
        member.owned = owned;
    }
    let member = &group.members[&member_id];
    let is_full = request.rebalance_timeout_ms != -1
        && (request.subscribed_topic_names.is_some() || request.subscribed_topic_regex.is_some())
        && request.topic_partitions.is_some();
    let is_told = request.member_epoch == JOINS || is_full || before.assigned != member.progress.assigned;
    let response = ConsumerGroupHeartbeatResponse::default()
        .with_member_id(Some(StrBytes::from_string(member_id.clone())))
        .with_member_epoch(member.progress.epoch)
        .with_heartbeat_interval_ms(HEARTBEAT_INTERVAL_MS)
        .with_assignment(is_told.then(|| told(&member.progress.assigned)));
    let revokes = member.progress.step == Step::Unrevoked && before != member.progress;
    let (due, epoch) = (cluster.now.at + member.rebalance_timeout, member.progress.epoch);
    let session_due = member.session_due;
    group.refresh(&cluster.topics);
    if revokes {
        let timer = GroupTimer::Revocation { group: name.clone(), member: member_id.clone(), epoch };
        cluster.remind(due, Timer::Group(timer));
    }
    if !has_timer {
        cluster.remind(session_due, Timer::Group(GroupTimer::ConsumerSession { group: name, member: member_id }));
    }
    Ok(response)
}

/// Checks what needs no group. Kafka's `throwIfConsumerGroupHeartbeatRequestIsInvalid`.
fn check(caller: &Caller, request: &ConsumerGroupHeartbeatRequest) -> Result<(), Refusal> {
    let is_empty = |text: &Option<StrBytes>| text.as_ref().is_some_and(|text| text.trim().is_empty());
    let epoch = request.member_epoch;
    let chooses = caller.version >= OWN_IDS_SINCE || epoch != JOINS;
    let wants_nothing = request.subscribed_topic_names.is_none() && request.subscribed_topic_regex.is_none();
    let joins_with = request.topic_partitions.as_ref().is_none_or(|owned| !owned.is_empty());
    let invalid = |text: &str| refuse(ResponseError::InvalidRequest, text);
    if request.group_id.trim().is_empty() {
        invalid("GroupId can't be empty.")
    } else if chooses && request.member_id.trim().is_empty() {
        invalid("MemberId can't be empty.")
    } else if is_empty(&request.instance_id) {
        invalid("InstanceId can't be empty.")
    } else if is_empty(&request.rack_id) {
        invalid("RackId can't be empty.")
    } else if epoch == JOINS && request.rebalance_timeout_ms == -1 {
        invalid("RebalanceTimeoutMs must be provided in first request.")
    } else if epoch == JOINS && joins_with {
        invalid("TopicPartitions must be empty when (re-)joining.")
    } else if epoch == JOINS && wants_nothing {
        invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
    } else if epoch == LEFT_FOR_A_WHILE && request.instance_id.is_none() {
        invalid("InstanceId can't be null.")
    } else if epoch < LEFT_FOR_A_WHILE {
        invalid(&format!("MemberEpoch is invalid: {epoch}."))
    } else {
        match request.server_assignor.as_ref().filter(|name| Assignor::of(name).is_none()) {
            Some(name) => refuse(
                ResponseError::UnsupportedAssignor,
                format!("ServerAssignor {name} is not supported. Supported assignors: uniform, range."),
            ),
            None => Ok(()),
        }
    }
}

/// Finds the member, or makes it where it joins, and returns its id.
fn enter(
    group: &mut ConsumerGroup,
    caller: &Caller,
    request: &ConsumerGroupHeartbeatRequest,
    now: std::time::Instant,
) -> Result<String, Refusal> {
    let asked = match request.member_id.as_str() {
        "" => format!("{:016x}{:016x}", RandomState::new().hash_one(caller.ticket), RandomState::new().hash_one(1)),
        id => id.to_owned(),
    };
    let joins = request.member_epoch == JOINS;
    let new = |id: &str| Member {
        id: id.to_owned(),
        instance_id: request.instance_id.as_ref().map(ToString::to_string),
        rack: None,
        client_id: caller.client_id.clone(),
        host: caller.host.clone(),
        rebalance_timeout: Duration::ZERO,
        subscription: Subscription::default(),
        progress: Progress::default(),
        owned: Assignment::new(),
        session_due: now,
    };
    let of_instance = request.instance_id.as_ref().map(|id| group.member_of(id).map(str::to_owned));
    match of_instance {
        Some(None) if !joins => return refuse(ResponseError::UnknownMemberId, "Instance id is unknown."),
        Some(Some(known)) if known != asked => {
            let is_away = group.members[&known].progress.epoch == LEFT_FOR_A_WHILE;
            if !joins {
                return refuse(ResponseError::FencedInstanceId, "Static member was fenced by a different member.");
            } else if !is_away {
                return refuse(ResponseError::UnreleasedInstanceId, "Static member is still used by another member.");
            }
            let member = Member { subscription: group.members[&known].subscription.clone(), ..new(&asked) };
            group.replace(&known, member);
            return Ok(asked);
        }
        _ => {}
    }
    match group.members.get_mut(&asked) {
        None if joins => {
            group.members.insert(asked.clone(), new(&asked));
            group.epoch += 1;
        }
        None => return refuse(ResponseError::UnknownMemberId, format!("Member {asked} is not a member of group.")),
        Some(member) if joins => {
            member.progress = Progress { assigned: member.progress.assigned.clone(), ..Progress::default() }
        }
        Some(member) => check_epoch(member, request)?,
    }
    Ok(asked)
}

fn check_epoch(member: &Member, request: &ConsumerGroupHeartbeatRequest) -> Result<(), Refusal> {
    let (told, known) = (request.member_epoch, member.progress.epoch);
    let owned = request.topic_partitions.as_ref().map(|owned| {
        owned.iter().map(|each| (each.topic_id, each.partitions.iter().copied().collect())).collect::<Assignment>()
    });
    // The answer to its last heartbeat was lost: it says the epoch before, and has no more than it was given.
    let lost = told == member.progress.previous_epoch
        && owned.is_some_and(|owned| reconciliation::is_within(&owned, &member.progress.assigned));
    if told == known || (told < known && lost) {
        return Ok(());
    }
    let text = format!("The consumer group member has an epoch ({told}) that is not the known one ({known}).");
    refuse(ResponseError::FencedMemberEpoch, text)
}

/// Returns what the member wants by now: what a request leaves out stays as it was.
fn subscription(request: &ConsumerGroupHeartbeatRequest, before: &Subscription) -> Result<Subscription, Refusal> {
    let mut wanted = before.clone();
    if let Some(topics) = &request.subscribed_topic_names {
        wanted.topics = topics.iter().map(|name| name.to_string()).collect();
    }
    if let Some(text) = &request.subscribed_topic_regex {
        wanted.pattern = match text.as_str() {
            "" => None,
            text => match Regex::new(&format!("^(?:{text})$")) {
                Ok(pattern) => Some((text.to_owned(), pattern)),
                Err(error) => {
                    let text = format!("SubscribedTopicRegex `{text}` is not a valid regular expression: {error}.");
                    return refuse(ResponseError::InvalidRegularExpression, text);
                }
            },
        };
    }
    if let Some(name) = &request.server_assignor {
        wanted.assignor = Assignor::of(name);
    }
    Ok(wanted)
}

fn leave(
    cluster: &mut Cluster,
    name: &str,
    request: &ConsumerGroupHeartbeatRequest,
) -> Result<ConsumerGroupHeartbeatResponse, Refusal> {
    let group = cluster.groups.consumer_mut(name, false);
    let group = group.map_err(|error| (error, format!("Group {name} is not a consumer group.")))?;
    let id = match &request.instance_id {
        Some(instance) => match group.member_of(instance) {
            Some(id) if id != request.member_id.as_str() => {
                return refuse(ResponseError::FencedInstanceId, "Static member was fenced by a different member.");
            }
            found => found.map(str::to_owned),
        },
        None => group.members.contains_key(request.member_id.as_str()).then(|| request.member_id.to_string()),
    };
    let Some(id) = id else {
        return refuse(ResponseError::UnknownMemberId, format!("Member is not a member of group {name}."));
    };
    if request.member_epoch == LEAVES {
        group.remove(&id);
        group.refresh(&cluster.topics);
    } else if let Some(member) = group.members.get_mut(&id) {
        let assigned = std::mem::take(&mut member.progress.assigned);
        member.progress = Progress { epoch: LEFT_FOR_A_WHILE, assigned, ..Progress::default() };
    }
    Ok(ConsumerGroupHeartbeatResponse::default()
        .with_member_id(Some(StrBytes::from_string(id)))
        .with_member_epoch(request.member_epoch))
}

/// Removes a member whose session is over, or looks again when it would be.
pub(crate) fn end_session(cluster: &mut Cluster, name: &str, member_id: &str) {
    let Ok(group) = cluster.groups.consumer_mut(name, false) else { return };
    let Some(due) = group.members.get(member_id).map(|member| member.session_due) else { return };
    if due > cluster.now.at {
        let timer = GroupTimer::ConsumerSession { group: name.to_owned(), member: member_id.to_owned() };
        return cluster.remind(due, Timer::Group(timer));
    }
    group.remove(member_id);
    group.refresh(&cluster.topics);
}

/// Removes a member that did not give its partitions up in time.
pub(crate) fn end_revocation(cluster: &mut Cluster, name: &str, member_id: &str, epoch: i32) {
    let Ok(group) = cluster.groups.consumer_mut(name, false) else { return };
    let is_late = |member: &Member| member.progress.step == Step::Unrevoked && member.progress.epoch == epoch;
    if group.members.get(member_id).is_some_and(is_late) {
        group.remove(member_id);
        group.refresh(&cluster.topics);
    }
}

fn told(assignment: &Assignment) -> Told {
    let topic = |(topic, partitions): (&uuid::Uuid, &BTreeSet<i32>)| {
        TopicPartitions::default().with_topic_id(*topic).with_partitions(partitions.iter().copied().collect())
    };
    Told::default().with_topic_partitions(assignment.iter().map(topic).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::{Fault, inject};
    use crate::testing::Driven;
    use kafka_protocol::messages::consumer_group_heartbeat_request::TopicPartitions as Owned;
    use kafka_protocol::messages::{GroupId, TopicName};

    fn request(member: &'static str, epoch: i32) -> ConsumerGroupHeartbeatRequest {
        ConsumerGroupHeartbeatRequest::default()
            .with_group_id(GroupId(StrBytes::from_static_str("g")))
            .with_member_id(StrBytes::from_static_str(member))
            .with_member_epoch(epoch)
            .with_rebalance_timeout_ms(-1)
            .with_topic_partitions(None)
            .with_subscribed_topic_names(None)
    }

    fn joining(member: &'static str) -> ConsumerGroupHeartbeatRequest {
        let topics = vec![TopicName(StrBytes::from_static_str("orders"))];
        request(member, 0)
            .with_rebalance_timeout_ms(1000)
            .with_topic_partitions(Some(Vec::new()))
            .with_subscribed_topic_names(Some(topics))
    }

    fn owning(driven: &Driven, member: &'static str, epoch: i32, partitions: &[i32]) -> ConsumerGroupHeartbeatRequest {
        let id = driven.cluster.topics.get("orders").expect("it exists").id;
        let owned = Owned::default().with_topic_id(id).with_partitions(partitions.to_vec());
        request(member, epoch).with_topic_partitions(Some(vec![owned]))
    }

    fn given(response: &ConsumerGroupHeartbeatResponse) -> Option<Vec<i32>> {
        let assignment = response.assignment.as_ref()?;
        Some(assignment.topic_partitions.iter().flat_map(|topic| topic.partitions.clone()).collect())
    }

    #[test]
    fn partitions_move_when_their_member_has_given_them_up() {
        let mut driven = Driven::new(1);
        let first = driven.ask(1, &joining("a"));
        assert_eq!((first.error_code, given(&first)), (0, Some(vec![0, 1])));
        let second = driven.ask(1, &joining("b"));
        assert_eq!((second.error_code, given(&second)), (0, Some(vec![])));
        let told = driven.ask(1, &request("a", first.member_epoch));
        assert_eq!((told.member_epoch, given(&told)), (first.member_epoch, Some(vec![0])));
        assert_eq!(given(&driven.ask(1, &request("b", second.member_epoch))), None);
        let owned = owning(&driven, "a", told.member_epoch, &[0]);
        let done = driven.ask(1, &owned);
        assert!(done.member_epoch > told.member_epoch);
        assert_eq!(given(&driven.ask(1, &request("b", second.member_epoch))), Some(vec![1]));
        let left = driven.ask(1, &request("a", -1));
        assert_eq!(left.member_epoch, -1);
        assert_eq!(given(&driven.ask(1, &request("b", second.member_epoch))), Some(vec![0, 1]));
    }

    #[test]
    fn a_member_that_is_silent_or_keeps_its_partitions_is_removed() {
        let mut driven = Driven::new(1);
        let first = driven.ask(1, &joining("a"));
        let second = driven.ask(1, &joining("b"));
        driven.ask(1, &request("a", first.member_epoch));
        driven.pass(Duration::from_millis(1001));
        assert_eq!(given(&driven.ask(1, &request("b", second.member_epoch))), Some(vec![0, 1]));
        let fenced = driven.ask(1, &request("a", first.member_epoch));
        assert_eq!(fenced.error_code, ResponseError::UnknownMemberId.code());
        driven.pass(SESSION_TIMEOUT + Duration::from_millis(1));
        assert_eq!(driven.cluster.groups.consumer("g").map(ConsumerGroup::state), Some("Empty"));
    }

    #[test]
    fn a_partition_that_a_test_revokes_is_given_up_and_then_assigned_again() {
        let mut driven = Driven::new(1);
        let first = driven.ask(1, &joining("a"));
        let revoke = Fault::Revoke("g".to_owned(), ("orders".to_owned(), 1));
        let revoked = inject(&mut driven.cluster, revoke).expect("the group exists");
        let unchanged = driven.ask(1, &request("a", first.member_epoch));
        assert_eq!(given(&unchanged), None, "the member has not said yet that it has the partition");
        let mut epoch = unchanged.member_epoch;
        driven.ask(1, &owning(&driven, "a", epoch, &[0, 1]));
        assert_eq!(given(&driven.ask(1, &request("a", epoch))), Some(vec![0]));
        assert!(!revoked.is_done());
        epoch = driven.ask(1, &owning(&driven, "a", epoch, &[0])).member_epoch;
        assert!(revoked.is_done());
        assert_eq!(given(&driven.ask(1, &request("a", epoch))), Some(vec![0, 1]));
    }

    #[test]
    fn a_member_that_a_test_removes_has_lost_its_partitions_when_it_was_told() {
        let mut driven = Driven::new(1);
        let epoch = driven.ask(1, &joining("a")).member_epoch;
        driven.ask(1, &owning(&driven, "a", epoch, &[0, 1]));
        let fault = Fault::Lose("g".to_owned(), ("orders".to_owned(), 1));
        let lost = inject(&mut driven.cluster, fault).expect("the group exists");
        assert!(!lost.is_done());
        assert_eq!(driven.ask(1, &request("a", epoch)).error_code, ResponseError::UnknownMemberId.code());
        assert!(lost.is_done());
        assert_eq!(given(&driven.ask(1, &joining("a"))), Some(vec![0, 1]));
    }

    #[test]
    fn new_partitions_and_topics_are_assigned() {
        let mut driven = Driven::new(1);
        let pattern = joining("a").with_subscribed_topic_names(None);
        let first = driven.ask(1, &pattern.with_subscribed_topic_regex(Some(StrBytes::from_static_str("or.*|new"))));
        assert_eq!(given(&first), Some(vec![0, 1]));
        let replicas = driven.cluster.spread(0, 1, 1);
        driven.cluster.topics.create("new", replicas, std::collections::BTreeMap::new());
        let more = driven.ask(1, &request("a", first.member_epoch));
        assert_eq!(given(&more).map(|each| each.len()), Some(3));
        driven.cluster.topics.delete("orders");
        let owned = request("a", more.member_epoch).with_topic_partitions(Some(Vec::new()));
        assert_eq!(given(&driven.ask(1, &owned)), Some(vec![0]));
    }

    #[test]
    fn a_static_member_comes_back_to_its_partitions() {
        let mut driven = Driven::new(1);
        let instance =
            |request: ConsumerGroupHeartbeatRequest| request.with_instance_id(Some(StrBytes::from_static_str("one")));
        let first = driven.ask(1, &instance(joining("a")));
        let used = driven.ask(1, &instance(joining("b")));
        assert_eq!(used.error_code, ResponseError::UnreleasedInstanceId.code());
        assert_eq!(driven.ask(1, &instance(request("a", -2))).member_epoch, -2);
        let back = driven.ask(1, &instance(joining("b")));
        assert_eq!((back.member_epoch, given(&back)), (first.member_epoch, Some(vec![0, 1])));
        let fenced = driven.ask(1, &instance(request("a", first.member_epoch)));
        assert_eq!(fenced.error_code, ResponseError::FencedInstanceId.code());
    }

    #[test]
    fn wrong_requests_get_kafkas_errors() {
        let mut driven = Driven::new(1);
        let wrong = [
            (joining("").with_group_id(GroupId::default()), ResponseError::InvalidRequest),
            (joining(""), ResponseError::InvalidRequest),
            (joining("a").with_rebalance_timeout_ms(-1), ResponseError::InvalidRequest),
            (joining("a").with_topic_partitions(None), ResponseError::InvalidRequest),
            (joining("a").with_subscribed_topic_names(None), ResponseError::InvalidRequest),
            (request("a", -2), ResponseError::InvalidRequest),
            (request("a", -3), ResponseError::InvalidRequest),
            (
                joining("a").with_server_assignor(Some(StrBytes::from_static_str("x"))),
                ResponseError::UnsupportedAssignor,
            ),
            (
                joining("a").with_subscribed_topic_regex(Some(StrBytes::from_static_str("("))),
                ResponseError::InvalidRegularExpression,
            ),
            (request("zz", 3), ResponseError::GroupIdNotFound),
        ];
        for (request, error) in wrong {
            let mut driven = Driven::new(1);
            assert_eq!(driven.ask(1, &request).error_code, error.code(), "{request:?}");
        }
        let first = driven.ask(1, &joining("a"));
        let unknown = driven.ask(1, &request("b", 1));
        assert_eq!(unknown.error_code, ResponseError::UnknownMemberId.code());
        let ahead = driven.ask(1, &request("a", first.member_epoch + 1));
        assert_eq!(ahead.error_code, ResponseError::FencedMemberEpoch.code());
    }
}
