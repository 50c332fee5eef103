//! A group of the classic protocol: the members choose a protocol and their leader assigns.
//!
//! The states are those of Kafka's `ClassicGroup`. A rebalance begins when a member comes, goes or changes; it ends as
//! soon as all members have joined again (`group.initial.rebalance.delay.ms` is 0), and the leader's assignment makes
//! the group stable.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::join_group_response::JoinGroupResponseMember;
use kafka_protocol::messages::{JoinGroupResponse, SyncGroupResponse};
use kafka_protocol::protocol::StrBytes;

use crate::cluster::{Cluster, Reply, Timer};
use crate::groups::GroupTimer;
use crate::groups::withdrawals::Withdrawal;

/// Where a group is in a rebalance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    #[default]
    Empty,
    /// Members are to join.
    PreparingRebalance,
    /// The leader is to assign.
    CompletingRebalance,
    Stable,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
        }
    }
}

/// A member.
#[derive(Debug)]
pub(crate) struct Member {
    pub id: String,
    pub instance_id: Option<String>,
    pub client_id: String,
    pub host: String,
    pub session_timeout: Duration,
    pub rebalance_timeout: Duration,
    /// The protocols that it knows and what it says in each, the best first.
    pub protocols: Vec<(String, Bytes)>,
    pub assignment: Bytes,
    /// Its place among those who came.
    pub order: u64,
    pub joining: Option<Reply<JoinGroupResponse>>,
    pub syncing: Option<Reply<SyncGroupResponse>>,
    pub session_due: Instant,
}

impl Member {
    /// Returns what the member says in a protocol.
    pub fn metadata(&self, protocol: &str) -> Bytes {
        let found = self.protocols.iter().find(|(name, _)| name == protocol);
        found.map(|(_, metadata)| metadata.clone()).unwrap_or_default()
    }
}

/// A group of the classic protocol.
#[derive(Debug, Default)]
pub(crate) struct ClassicGroup {
    pub state: State,
    pub generation: i32,
    pub protocol_type: Option<String>,
    pub protocol: Option<String>,
    pub leader: Option<String>,
    pub members: BTreeMap<String, Member>,
    /// The members that got an id and are to join with it.
    pub pending: BTreeSet<String>,
    pub came: u64,
    /// Counts the joins and the assignments that have begun, so that a time-out belongs to one of them.
    pub phase: u64,
    /// The partitions that a test takes from members.
    pub withdrawals: Vec<Withdrawal>,
}

/// An answer to a request that was kept.
pub(crate) enum Due {
    Join(Reply<JoinGroupResponse>, JoinGroupResponse),
    Sync(Reply<SyncGroupResponse>, SyncGroupResponse),
}

impl ClassicGroup {
    /// Returns the id of the member with an instance id.
    pub fn member_of(&self, instance_id: &str) -> Option<&str> {
        let of_instance = |member: &&Member| member.instance_id.as_deref() == Some(instance_id);
        self.members.values().find(of_instance).map(|member| member.id.as_str())
    }

    /// Returns whether a member reads a topic. What members say is a `ConsumerProtocolSubscription`: a version, then
    /// the topics.
    pub fn is_subscribed(&self, topic: &str) -> bool {
        let protocol = self.protocol.as_deref().unwrap_or("");
        self.members.values().any(|member| topics_in(&member.metadata(protocol)).iter().any(|each| each == topic))
    }

    /// Checks that a request comes from a member, by its id and its instance id.
    ///
    /// # Errors
    /// `UnknownMemberId`, `FencedInstanceId`.
    pub fn check_member(&self, member_id: &str, instance_id: Option<&StrBytes>) -> Result<(), ResponseError> {
        if let Some(instance_id) = instance_id {
            let known = self.member_of(instance_id).ok_or(ResponseError::UnknownMemberId)?;
            return if known == member_id { Ok(()) } else { Err(ResponseError::FencedInstanceId) };
        }
        if self.members.contains_key(member_id) { Ok(()) } else { Err(ResponseError::UnknownMemberId) }
    }

    /// Checks a member and its generation.
    ///
    /// # Errors
    /// `UnknownMemberId`, `FencedInstanceId`, `IllegalGeneration`.
    pub fn check(&self, member_id: &str, instance_id: Option<&StrBytes>, generation: i32) -> Result<(), ResponseError> {
        self.check_member(member_id, instance_id)?;
        if generation == self.generation { Ok(()) } else { Err(ResponseError::IllegalGeneration) }
    }

    /// Returns whether a member with these protocols fits to the others, `except` one.
    pub fn fits(&self, protocol_type: &str, protocols: &[(String, Bytes)], except: &str) -> bool {
        let mut others = self.members.values().filter(|member| member.id != except).peekable();
        if others.peek().is_none() {
            return !protocols.is_empty() && !protocol_type.is_empty();
        }
        let knows = |member: &Member, name: &str| member.protocols.iter().any(|(each, _)| each == name);
        let others: Vec<&Member> = others.collect();
        self.protocol_type.as_deref() == Some(protocol_type)
            && protocols.iter().any(|(name, _)| others.iter().all(|member| knows(member, name)))
    }

    /// Begins a rebalance, unless one has begun. Members that wait for their assignment are to join again.
    pub fn prepare(&mut self, due: &mut Vec<Due>) {
        for member in self.members.values_mut() {
            if let Some(reply) = member.syncing.take() {
                let error = ResponseError::RebalanceInProgress.code();
                due.push(Due::Sync(reply, SyncGroupResponse::default().with_error_code(error)));
            }
        }
        if self.state == State::CompletingRebalance {
            self.members.values_mut().for_each(|member| member.assignment = Bytes::new());
        }
        if self.state != State::PreparingRebalance {
            self.phase += 1;
        }
        self.state = State::PreparingRebalance;
    }

    /// Ends the join if all members have joined, or at once where `is_late`: those that have not are removed then.
    pub fn complete(&mut self, is_late: bool, now: Instant, due: &mut Vec<Due>) {
        let all = self.pending.is_empty() && self.members.values().all(|member| member.joining.is_some());
        if self.state != State::PreparingRebalance || !(all || is_late) {
            return;
        }
        // A static member keeps its place until its session ends.
        self.members.retain(|_, member| member.joining.is_some() || member.instance_id.is_some());
        self.pending.clear();
        self.generation += 1;
        if self.members.is_empty() {
            (self.state, self.protocol, self.leader) = (State::Empty, None, None);
            self.end_revocations();
            return;
        }
        let has_joined = |id: &String| self.members.get(id).is_some_and(|member| member.joining.is_some());
        if !self.leader.as_ref().is_some_and(has_joined) {
            let joined = self.members.values().filter(|member| member.joining.is_some());
            self.leader = joined.min_by_key(|member| member.order).map(|member| member.id.clone());
        }
        self.state = State::CompletingRebalance;
        self.phase += 1;
        self.protocol = self.chosen();
        self.end_revocations();
        let ids: Vec<String> = self.members.keys().cloned().collect();
        for id in ids {
            let answer = self.joined(&id);
            let Some(member) = self.members.get_mut(&id) else { continue };
            member.session_due = now + member.session_timeout;
            if let Some(reply) = member.joining.take() {
                due.push(Due::Join(reply, answer));
            }
        }
    }

    /// Returns the answer that tells a member of the generation.
    pub fn joined(&self, member_id: &str) -> JoinGroupResponse {
        let text = |text: Option<&String>| text.map(|text| StrBytes::from_string(text.clone()));
        let protocol = self.protocol.as_deref().unwrap_or("");
        let told = |member: &Member| {
            JoinGroupResponseMember::default()
                .with_member_id(StrBytes::from_string(member.id.clone()))
                .with_group_instance_id(text(member.instance_id.as_ref()))
                .with_metadata(member.metadata(protocol))
        };
        let leads = self.leader.as_deref() == Some(member_id);
        let members = if leads { self.members.values().map(told).collect() } else { Vec::new() };
        JoinGroupResponse::default()
            .with_generation_id(self.generation)
            .with_protocol_type(text(self.protocol_type.as_ref()))
            .with_protocol_name(text(self.protocol.as_ref()))
            .with_leader(text(self.leader.as_ref()).unwrap_or_default())
            .with_member_id(StrBytes::from_string(member_id.to_owned()))
            .with_members(members)
    }

    /// Removes a member, whose requests that wait are answered with an error.
    pub fn remove(&mut self, member_id: &str, error: ResponseError, due: &mut Vec<Due>) -> Option<Member> {
        let mut member = self.members.remove(member_id)?;
        forget_requests(&mut member, error, due);
        if self.leader.as_deref() == Some(member_id) {
            self.leader = None;
        }
        Some(member)
    }

    /// Has the others rebalance after a member went.
    pub fn rebalance_without(&mut self, now: Instant, due: &mut Vec<Due>) {
        if matches!(self.state, State::Stable | State::CompletingRebalance) {
            self.prepare(due);
        }
        self.complete(false, now, due);
    }

    /// Returns how long members may take to join.
    pub fn rebalance_timeout(&self) -> Duration {
        self.members.values().map(|member| member.rebalance_timeout).max().unwrap_or_default()
    }

    /// Returns the protocol that most members like best, of those that all know.
    fn chosen(&self) -> Option<String> {
        let knows = |member: &Member, name: &str| member.protocols.iter().any(|(each, _)| each == name);
        let common = |name: &str| self.members.values().all(|member| knows(member, name));
        let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
        for member in self.members.values() {
            if let Some((name, _)) = member.protocols.iter().find(|(name, _)| common(name)) {
                *votes.entry(name).or_default() += 1;
            }
        }
        votes.into_iter().max_by_key(|(_, count)| *count).map(|(name, _)| name.to_owned())
    }
}

/// Returns the topics of a subscription; none where it is not one.
fn topics_in(metadata: &Bytes) -> Vec<String> {
    let mut left = metadata.clone();
    let (Ok(_version), Ok(count)) = (left.try_get_i16(), left.try_get_i32()) else { return Vec::new() };
    let mut topics = Vec::new();
    for _ in 0..count {
        let Ok(length) = left.try_get_i16() else { break };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > left.len() {
            break;
        }
        topics.push(String::from_utf8_lossy(&left.split_to(length)).into_owned());
    }
    topics
}

/// Answers the requests of a member that wait with an error.
pub(crate) fn forget_requests(member: &mut Member, error: ResponseError, due: &mut Vec<Due>) {
    if let Some(reply) = member.joining.take() {
        due.push(Due::Join(reply, refused_join(error, &member.id)));
    }
    if let Some(reply) = member.syncing.take() {
        due.push(Due::Sync(reply, SyncGroupResponse::default().with_error_code(error.code())));
    }
}

/// Returns the answer to a join that is refused.
pub(crate) fn refused_join(error: ResponseError, member_id: &str) -> JoinGroupResponse {
    JoinGroupResponse::default()
        .with_error_code(error.code())
        .with_generation_id(-1)
        .with_protocol_name(Some(StrBytes::default()))
        .with_member_id(StrBytes::from_string(member_id.to_owned()))
}

/// Changes a classic group, sends the answers that the change made due, and has its time-outs looked after.
///
/// # Errors
/// Those of [`Groups::classic_mut`](crate::groups::Groups::classic_mut) and of the function.
pub(crate) fn change<T>(
    cluster: &mut Cluster,
    name: &str,
    creates: bool,
    function: impl FnOnce(&mut ClassicGroup, &mut Vec<Due>) -> Result<T, ResponseError>,
) -> Result<T, ResponseError> {
    let now = cluster.now.at;
    let mut due = Vec::new();
    let group = cluster.groups.classic_mut(name, creates)?;
    let before = group.phase;
    let result = function(group, &mut due);
    let is_rebalancing = matches!(group.state, State::PreparingRebalance | State::CompletingRebalance);
    if is_rebalancing && before != group.phase {
        let (timeout, phase) = (group.rebalance_timeout(), group.phase);
        let timer = GroupTimer::Rebalance { group: name.to_owned(), phase };
        cluster.remind(now + timeout, Timer::Group(timer));
    }
    for answer in due {
        match answer {
            Due::Join(reply, answer) => cluster.answer(&reply, &for_version(answer, reply.version)),
            Due::Sync(reply, answer) => cluster.answer(&reply, &answer),
        }
    }
    result
}

/// Fits an answer to the version of its request: before version 7 the protocol's name is not null.
pub(crate) fn for_version(answer: JoinGroupResponse, version: i16) -> JoinGroupResponse {
    let protocol = answer.protocol_name.clone().unwrap_or_default();
    if version < 7 { answer.with_protocol_name(Some(protocol)) } else { answer }
}

/// Removes a member that was silent, or looks again when its session would be over.
pub(crate) fn end_session(cluster: &mut Cluster, name: &str, member_id: &str) {
    let now = cluster.now.at;
    let Ok(group) = cluster.groups.classic_mut(name, false) else { return };
    let Some(member) = group.members.get(member_id) else { return };
    let waits = member.joining.is_some() || member.syncing.is_some();
    let due = if waits { now + member.session_timeout } else { member.session_due };
    if due > now {
        let timer = GroupTimer::Session { group: name.to_owned(), member: member_id.to_owned() };
        return cluster.remind(due, Timer::Group(timer));
    }
    let removed = change(cluster, name, false, |group, due| {
        group.remove(member_id, ResponseError::UnknownMemberId, due);
        group.rebalance_without(now, due);
        Ok(())
    });
    debug_assert!(removed.is_ok(), "the group was there");
}

/// Forgets a member that got an id and did not come back. A group that has taken the new protocol by now has none.
pub(crate) fn end_pending(cluster: &mut Cluster, name: &str, member_id: &str) {
    let now = cluster.now.at;
    let _ = change(cluster, name, false, |group, due| {
        if group.pending.remove(member_id) {
            group.complete(false, now, due);
        }
        Ok(())
    });
}

/// Goes on without the members that did not join in time, or without those that did not ask for their assignment. A
/// group that has taken the new protocol by now has none.
pub(crate) fn end_rebalance(cluster: &mut Cluster, name: &str, phase: u64) {
    let now = cluster.now.at;
    let _ = change(cluster, name, false, |group, due| {
        if group.phase != phase {
            return Ok(());
        }
        if group.state == State::CompletingRebalance {
            let silent = group.members.values().filter(|member| member.syncing.is_none());
            let silent: Vec<String> = silent.map(|member| member.id.clone()).collect();
            for id in &silent {
                group.remove(id, ResponseError::UnknownMemberId, due);
            }
            group.prepare(due);
            group.complete(false, now, due);
        } else {
            group.complete(true, now, due);
        }
        Ok(())
    });
}
