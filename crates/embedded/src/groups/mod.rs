//! Groups: their committed offsets, and the members of one of the two protocols.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};

use kafka_protocol::ResponseError;

use crate::cluster::Cluster;

pub(crate) mod assignors;
pub(crate) mod classic;
pub(crate) mod consumer;
pub(crate) mod delete;
pub(crate) mod describe;
pub(crate) mod describe_consumer;
pub(crate) mod heartbeat;
pub(crate) mod join;
pub(crate) mod leave;
pub(crate) mod offsets;
pub(crate) mod reconciliation;
pub(crate) mod sync;
pub(crate) mod withdrawals;

use classic::ClassicGroup;
use consumer::ConsumerGroup;
use offsets::Offsets;

/// Something that is due for a group. What it was for may be over by then.
#[derive(Debug)]
pub(crate) enum GroupTimer {
    /// A member of a classic group has been silent for its session time-out.
    Session { group: String, member: String },
    /// A member got its id and did not come back.
    Pending { group: String, member: String },
    /// Members had the rebalance time-out to join, or to ask for their assignment.
    Rebalance { group: String, phase: u64 },
    /// A member of the new protocol has been silent for its session time-out.
    ConsumerSession { group: String, member: String },
    /// A member of the new protocol had the rebalance time-out to give partitions up.
    Revocation { group: String, member: String, epoch: i32 },
}

impl GroupTimer {
    /// Does what is due.
    pub fn fire(self, cluster: &mut Cluster) {
        match self {
            Self::Session { group, member } => classic::end_session(cluster, &group, &member),
            Self::Pending { group, member } => classic::end_pending(cluster, &group, &member),
            Self::Rebalance { group, phase } => classic::end_rebalance(cluster, &group, phase),
            Self::ConsumerSession { group, member } => heartbeat::end_session(cluster, &group, &member),
            Self::Revocation { group, member, epoch } => heartbeat::end_revocation(cluster, &group, &member, epoch),
        }
    }
}

/// The members of a group, by its protocol.
#[derive(Debug)]
pub(crate) enum Members {
    Classic(ClassicGroup),
    Consumer(ConsumerGroup),
}

/// A group.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub members: Members,
    pub offsets: Offsets,
}

impl Default for Members {
    fn default() -> Self {
        Self::Classic(ClassicGroup::default())
    }
}

impl Group {
    /// Returns whether the group has no members.
    pub fn is_empty(&self) -> bool {
        match &self.members {
            Members::Classic(group) => group.members.is_empty() && group.pending.is_empty(),
            Members::Consumer(group) => group.members.is_empty(),
        }
    }

    /// Returns the group's state, as Kafka names it.
    pub fn state(&self) -> &'static str {
        match &self.members {
            Members::Classic(group) => group.state.name(),
            Members::Consumer(group) => group.state(),
        }
    }

    /// Returns the protocol's name in the answers of administration.
    pub fn kind(&self) -> &'static str {
        match &self.members {
            Members::Classic(_) => "Classic",
            Members::Consumer(_) => "Consumer",
        }
    }

    /// Returns the type of the members' protocol; empty for a group that only commits.
    pub fn protocol_type(&self) -> &str {
        match &self.members {
            Members::Classic(group) => group.protocol_type.as_deref().unwrap_or(""),
            Members::Consumer(_) => "consumer",
        }
    }
}

/// All groups of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    by_name: BTreeMap<String, Group>,
}

impl Groups {
    pub fn get(&self, name: &str) -> Option<&Group> {
        self.by_name.get(name)
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Group> {
        self.by_name.get_mut(name)
    }

    /// Returns a group, which is made if there is none.
    pub fn entry(&mut self, name: &str) -> &mut Group {
        self.by_name.entry(name.to_owned()).or_default()
    }

    pub fn remove(&mut self, name: &str) -> Option<Group> {
        self.by_name.remove(name)
    }

    /// Returns the groups by their names, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Group)> {
        self.by_name.iter().map(|(name, group)| (name.as_str(), group))
    }

    /// Returns a group of the new protocol.
    pub fn consumer(&self, name: &str) -> Option<&ConsumerGroup> {
        match &self.get(name)?.members {
            Members::Consumer(group) => Some(group),
            Members::Classic(_) => None,
        }
    }

    /// Returns a group of the new protocol; makes it of one without members where `creates`.
    ///
    /// # Errors
    /// `GroupIdNotFound`.
    pub fn consumer_mut(&mut self, name: &str, creates: bool) -> Result<&mut ConsumerGroup, ResponseError> {
        let group =
            if creates { self.entry(name) } else { self.get_mut(name).ok_or(ResponseError::GroupIdNotFound)? };
        if creates && group.is_empty() && matches!(group.members, Members::Classic(_)) {
            group.members = Members::Consumer(ConsumerGroup::default());
        }
        match &mut group.members {
            Members::Consumer(group) => Ok(group),
            Members::Classic(_) => Err(ResponseError::GroupIdNotFound),
        }
    }

    /// Returns a classic group; makes it of one without members where `creates`.
    ///
    /// # Errors
    /// `UnknownMemberId` where there is no such group, `InconsistentGroupProtocol` for one of the new protocol.
    pub fn classic_mut(&mut self, name: &str, creates: bool) -> Result<&mut ClassicGroup, ResponseError> {
        let group =
            if creates { self.entry(name) } else { self.get_mut(name).ok_or(ResponseError::UnknownMemberId)? };
        if creates && group.is_empty() && matches!(group.members, Members::Consumer(_)) {
            group.members = Members::default();
        }
        match &mut group.members {
            Members::Classic(group) => Ok(group),
            Members::Consumer(_) => Err(ResponseError::InconsistentGroupProtocol),
        }
    }

    /// Forgets the offsets of a topic that is deleted.
    pub fn forget_topic(&mut self, topic: &str) {
        self.by_name.values_mut().for_each(|group| group.offsets.forget_topic(topic));
    }
}

/// Makes an id for a member.
pub(crate) fn new_member_id(prefix: &str) -> String {
    let random = RandomState::new();
    format!("{prefix}-{:016x}{:016x}", random.hash_one(0), random.hash_one(1))
}

/// Offsets that transactions have sent, by producer.
pub(crate) type Pending = HashMap<i64, BTreeMap<(String, i32), offsets::Committed>>;
