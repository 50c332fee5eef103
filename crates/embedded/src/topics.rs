//! Topics and their partitions: replicas, leaders, settings, logs.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};

use kafka_protocol::ResponseError;
use uuid::Uuid;

use crate::log::Log;

const NAME_MAX: usize = 249;

/// A partition.
#[derive(Debug)]
pub(crate) struct Partition {
    pub log: Log,
    /// The brokers that keep it, the preferred leader first.
    pub replicas: Vec<i32>,
    /// The broker that serves it; `None` while all its replicas are down.
    pub leader: Option<i32>,
    pub leader_epoch: i32,
    /// The fetches that wait for its next message.
    pub watchers: Vec<u64>,
}

impl Partition {
    fn new(replicas: Vec<i32>) -> Self {
        let leader = replicas.first().copied();
        Self { log: Log::default(), replicas, leader, leader_epoch: 0, watchers: Vec::new() }
    }
}

/// A topic.
#[derive(Debug)]
pub(crate) struct Topic {
    pub id: Uuid,
    pub partitions: Vec<Partition>,
    /// The settings that were set; the others have their defaults.
    pub settings: BTreeMap<String, String>,
}

impl Topic {
    /// Returns a setting as a number, or the default where it was not set.
    pub fn number(&self, setting: &str, default: i64) -> i64 {
        self.settings.get(setting).and_then(|value| value.parse().ok()).unwrap_or(default)
    }

    /// Returns a setting's text, or the default where it was not set.
    pub fn text<'a>(&'a self, setting: &str, default: &'a str) -> &'a str {
        self.settings.get(setting).map_or(default, String::as_str)
    }
}

/// All topics of a cluster.
#[derive(Debug)]
pub(crate) struct Topics {
    by_name: BTreeMap<String, Topic>,
    names: HashMap<Uuid, String>,
    /// Half of each id; the other half counts.
    seed: u64,
    created: u64,
}

impl Topics {
    pub fn new() -> Self {
        Self { by_name: BTreeMap::new(), names: HashMap::new(), seed: RandomState::new().hash_one(0), created: 0 }
    }

    /// Creates a topic, with the replicas of each partition. The names and the replicas must have been checked.
    pub fn create(&mut self, name: &str, replicas: Vec<Vec<i32>>, settings: BTreeMap<String, String>) -> Uuid {
        self.created += 1;
        let id = Uuid::from_u64_pair(self.seed, self.created);
        let partitions = replicas.into_iter().map(Partition::new).collect();
        self.names.insert(id, name.to_owned());
        self.by_name.insert(name.to_owned(), Topic { id, partitions, settings });
        id
    }

    /// Adds partitions to a topic.
    pub fn add_partitions(&mut self, name: &str, replicas: Vec<Vec<i32>>) {
        if let Some(topic) = self.by_name.get_mut(name) {
            topic.partitions.extend(replicas.into_iter().map(Partition::new));
        }
    }

    /// Deletes a topic and returns it.
    pub fn delete(&mut self, name: &str) -> Option<Topic> {
        let topic = self.by_name.remove(name)?;
        self.names.remove(&topic.id);
        Some(topic)
    }

    pub fn get(&self, name: &str) -> Option<&Topic> {
        self.by_name.get(name)
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Topic> {
        self.by_name.get_mut(name)
    }

    /// Returns the name of the topic with an id.
    pub fn name_of(&self, id: Uuid) -> Option<&str> {
        self.names.get(&id).map(String::as_str)
    }

    /// Returns a partition.
    ///
    /// # Errors
    /// `UnknownTopicOrPartition`.
    pub fn partition(&self, topic: &str, index: i32) -> Result<&Partition, ResponseError> {
        let topic = self.get(topic).ok_or(ResponseError::UnknownTopicOrPartition)?;
        let index = usize::try_from(index).map_err(|_| ResponseError::UnknownTopicOrPartition)?;
        topic.partitions.get(index).ok_or(ResponseError::UnknownTopicOrPartition)
    }

    /// Returns a partition to be changed.
    ///
    /// # Errors
    /// `UnknownTopicOrPartition`.
    pub fn partition_mut(&mut self, topic: &str, index: i32) -> Result<&mut Partition, ResponseError> {
        let topic = self.get_mut(topic).ok_or(ResponseError::UnknownTopicOrPartition)?;
        let index = usize::try_from(index).map_err(|_| ResponseError::UnknownTopicOrPartition)?;
        topic.partitions.get_mut(index).ok_or(ResponseError::UnknownTopicOrPartition)
    }

    /// Returns the topics by their names, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Topic)> {
        self.by_name.iter().map(|(name, topic)| (name.as_str(), topic))
    }

    /// Elects leaders after a broker went or came: a partition whose leader is down gets the first replica that is up.
    pub fn elect(&mut self, is_up: impl Fn(i32) -> bool) {
        for partition in self.by_name.values_mut().flat_map(|topic| &mut topic.partitions) {
            if partition.leader.is_some_and(&is_up) {
                continue;
            }
            let next = partition.replicas.iter().copied().find(|broker| is_up(*broker));
            if next != partition.leader {
                partition.leader = next;
                partition.leader_epoch += 1;
            }
        }
    }
}

/// Returns whether Kafka takes the name for a topic.
pub(crate) fn is_topic_name(name: &str) -> bool {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
    !name.is_empty() && name.len() <= NAME_MAX && name != "." && name != ".." && name.chars().all(allowed)
}
