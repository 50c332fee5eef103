//! A group of the new protocol (KIP-848): the broker assigns, and each member goes to its new partitions by its own
//! heartbeats.
//!
//! Kafka's `ConsumerGroup` and `GroupMetadataManager`. The epoch of the group counts its changes; a target assignment
//! is made for each; members follow it by the steps of `reconciliation`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use kafka_protocol::ResponseError;
use regex_lite::Regex;
use uuid::Uuid;

use crate::groups::assignors::{self, Assignment, Assignor, Subscriber};
use crate::groups::reconciliation::{self, Progress, Step};
use crate::groups::withdrawals::Withdrawal;
use crate::topics::Topics;

/// Kafka's defaults of `group.consumer.session.timeout.ms`.
pub(crate) const SESSION_TIMEOUT: Duration = Duration::from_secs(45);
/// Kafka's default is 5 s. Members learn of a rebalance by a heartbeat, and a test should not wait for it.
pub(crate) const HEARTBEAT_INTERVAL_MS: i32 = 200;

/// The epoch with which a static member leaves for a while.
pub(crate) const LEFT_FOR_A_WHILE: i32 = -2;

/// The wishes of a member.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subscription {
    pub topics: BTreeSet<String>,
    /// The pattern, and how it was written. It matches whole names.
    pub pattern: Option<(String, Regex)>,
    pub assignor: Option<Assignor>,
}

impl Subscription {
    /// Returns whether another subscription wants the same.
    pub fn is_same(&self, other: &Self) -> bool {
        let text = |each: &Self| each.pattern.as_ref().map(|(text, _)| text.clone());
        self.topics == other.topics && text(self) == text(other) && self.assignor == other.assignor
    }

    fn wants(&self, topic: &str) -> bool {
        self.topics.contains(topic) || self.pattern.as_ref().is_some_and(|(_, pattern)| pattern.is_match(topic))
    }
}

/// A member of a group.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub id: String,
    pub instance_id: Option<String>,
    pub rack: Option<String>,
    pub client_id: String,
    pub host: String,
    pub rebalance_timeout: Duration,
    pub subscription: Subscription,
    pub progress: Progress,
    /// The partitions that it last said it has.
    pub owned: Assignment,
    pub session_due: Instant,
}

/// A group of the new protocol.
#[derive(Debug, Default)]
pub(crate) struct ConsumerGroup {
    pub epoch: i32,
    pub assignment_epoch: i32,
    pub members: BTreeMap<String, Member>,
    pub target: BTreeMap<String, Assignment>,
    /// The topics that members want, with the number of their partitions, when the target was made.
    known: BTreeMap<Uuid, i32>,
    /// The partitions that a test takes from members.
    pub withdrawals: Vec<Withdrawal>,
}

impl ConsumerGroup {
    /// Returns the group's state, as Kafka names it.
    pub fn state(&self) -> &'static str {
        let is_reached =
            |member: &Member| member.progress.epoch == self.assignment_epoch && member.progress.step == Step::Stable;
        if self.members.is_empty() {
            "Empty"
        } else if self.epoch > self.assignment_epoch {
            "Assigning"
        } else if self.members.values().all(is_reached) {
            "Stable"
        } else {
            "Reconciling"
        }
    }

    /// Returns the assignor that most members ask for; the first where there are as many for another.
    pub fn assignor(&self) -> Assignor {
        let mut votes: BTreeMap<Assignor, usize> = BTreeMap::new();
        for assignor in self.members.values().filter_map(|member| member.subscription.assignor) {
            *votes.entry(assignor).or_default() += 1;
        }
        let most = votes.into_iter().rev().max_by_key(|(_, count)| *count);
        most.map(|(assignor, _)| assignor).unwrap_or_default()
    }

    /// Checks the epoch of a member that commits or fetches offsets.
    ///
    /// # Errors
    /// `UnknownMemberId`, `StaleMemberEpoch`.
    pub fn check_member(&self, member_id: &str, epoch: i32) -> Result<(), ResponseError> {
        let member = self.members.get(member_id).ok_or(ResponseError::UnknownMemberId)?;
        if member.progress.epoch == epoch { Ok(()) } else { Err(ResponseError::StaleMemberEpoch) }
    }

    /// Returns the id of the member with an instance id.
    pub fn member_of(&self, instance_id: &str) -> Option<&str> {
        let of_instance = |member: &&Member| member.instance_id.as_deref() == Some(instance_id);
        self.members.values().find(of_instance).map(|member| member.id.as_str())
    }

    /// Returns whether a member reads a topic.
    pub fn is_subscribed(&self, topic: &str) -> bool {
        self.members.values().any(|member| member.subscription.wants(topic))
    }

    /// Removes a member; the others get its partitions.
    pub fn remove(&mut self, member_id: &str) -> Option<Member> {
        let removed = self.members.remove(member_id)?;
        self.target.remove(member_id);
        self.epoch += 1;
        Some(removed)
    }

    /// Replaces a static member that left for a while: the new one has its partitions.
    pub fn replace(&mut self, old: &str, new: Member) {
        if let Some(gone) = self.members.remove(old) {
            let assigned = gone.progress.assigned;
            let progress = Progress { assigned, ..Progress::default() };
            let target = self.target.remove(old).unwrap_or_default();
            self.target.insert(new.id.clone(), target);
            self.members.insert(new.id.clone(), Member { progress, ..new });
        }
    }

    /// Makes a new target where the members' topics or their partitions have changed, or a member has.
    pub fn refresh(&mut self, topics: &Topics) {
        self.pursue_withdrawals(topics);
        let wanted: HashMap<&str, BTreeSet<Uuid>> =
            self.members.values().map(|member| (member.id.as_str(), wanted_by(member, topics))).collect();
        let all: BTreeSet<Uuid> = wanted.values().flatten().copied().collect();
        let counts: BTreeMap<Uuid, i32> = all.iter().map(|id| (*id, partitions_of(topics, *id))).collect();
        if counts != self.known {
            self.known = counts;
            self.epoch += 1;
        }
        if self.epoch == self.assignment_epoch {
            return;
        }
        let subscriber = |member: &Member| Subscriber {
            member_id: member.id.clone(),
            instance_id: member.instance_id.clone(),
            topics: wanted[member.id.as_str()].clone(),
            before: self.target.get(&member.id).cloned().unwrap_or_default(),
        };
        let subscribers: Vec<Subscriber> = self.members.values().map(subscriber).collect();
        self.target = assignors::assign(self.assignor(), &subscribers, &self.known);
        self.withhold(topics);
        self.assignment_epoch = self.epoch;
    }

    /// Lets a member take its next step; `owned` is what it said that it has.
    pub fn advance(&mut self, member_id: &str, owned: Option<&Assignment>) {
        let Some(member) = self.members.get(member_id) else { return };
        let others = self.members.values().filter(|other| other.id != member_id);
        let taken: BTreeSet<(Uuid, i32)> = others
            .flat_map(|other| [&other.progress.assigned, &other.progress.revoking])
            .flat_map(reconciliation::partitions)
            .collect();
        let none = Assignment::new();
        let target = self.target.get(member_id).unwrap_or(&none);
        let is_free = |partition: &(Uuid, i32)| !taken.contains(partition);
        let next = reconciliation::advance(&member.progress, self.assignment_epoch, target, owned, is_free);
        if let Some(member) = self.members.get_mut(member_id) {
            member.progress = next;
        }
    }
}

fn wanted_by(member: &Member, topics: &Topics) -> BTreeSet<Uuid> {
    let wanted = topics.iter().filter(|(name, _)| member.subscription.wants(name));
    wanted.map(|(_, topic)| topic.id).collect()
}

fn partitions_of(topics: &Topics, id: Uuid) -> i32 {
    let topic = topics.name_of(id).and_then(|name| topics.get(name));
    topic.map_or(0, |topic| topic.partitions.len() as i32)
}
