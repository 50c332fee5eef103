//! The partitions that this member holds, from the moment they are assigned until they are given back.

use std::collections::HashMap;
use std::sync::Arc;

use super::partition_queue::{PartitionQueue, Surroundings};
use super::route::Route;
use super::{Hook, StartAt};
use crate::clock::Deadline;
use crate::kafka::{CommittedOffset, TopicPartition};
use crate::wake::Parker;
use crate::{Error, Result};

/// The partitions that this member holds.
pub(super) struct Assignment {
    routes: HashMap<String, Route>,
    partitions: HashMap<TopicPartition, Arc<PartitionQueue>>,
    surroundings: Surroundings,
    /// Counts assignments of any partition, so that each has a number of its own.
    generations: u64,
}

impl Assignment {
    pub(super) fn new(routes: Vec<Route>, surroundings: Surroundings) -> Self {
        let routes = routes.into_iter().map(|route| (route.topic.clone(), route)).collect();
        Self { routes, partitions: HashMap::new(), surroundings, generations: 0 }
    }

    /// All of them.
    pub(super) fn partitions(&self) -> Vec<TopicPartition> {
        self.partitions.keys().cloned().collect()
    }

    /// One of them.
    pub(super) fn get(&self, at: &TopicPartition) -> Option<&Arc<PartitionQueue>> {
        self.partitions.get(at)
    }

    /// All of them, as queues.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<PartitionQueue>> {
        self.partitions.values()
    }

    /// How many they are.
    pub(super) fn len(&self) -> usize {
        self.partitions.len()
    }

    /// Opens partitions, with what the group has committed for them, and their hook `assigned` in front; to be called before librdkafka
    /// begins to fetch.
    pub(super) fn open(
        &mut self,
        partitions: &[TopicPartition],
        committed: &HashMap<TopicPartition, CommittedOffset>,
    ) -> Result<()> {
        for at in partitions {
            let route = self.routes.get(&*at.topic).ok_or_else(|| Error::Invalid {
                reason: format!("the group assigned {at}, which no route asked for"),
            })?;
            self.generations += 1;
            let partition = PartitionQueue::open(
                at.clone(),
                self.generations,
                &route.lane,
                &route.scheduler,
                self.surroundings.clone(),
            )?;
            // Before the hook, which may seek.
            if let Some(committed) = committed.get(at) {
                partition.remember(committed);
            }
            route.scheduler.post_hook(partition.lane(), Hook::Assigned);
            if let Some(earlier) = self.partitions.insert(at.clone(), partition) {
                earlier.close();
            }
        }
        Ok(())
    }

    /// Where reading of a partition begins that has no committed offset, if its route says so.
    pub(super) fn start_of(&self, at: &TopicPartition) -> Option<StartAt> {
        self.routes.get(&*at.topic)?.start
    }

    /// Lets no new job of these partitions begin.
    pub(super) fn withdraw(&self, partitions: &[TopicPartition]) {
        for partition in self.held(partitions) {
            partition.withdraw();
        }
    }

    /// Puts a hook behind what the partitions are doing.
    pub(super) fn post_hook(&self, partitions: &[TopicPartition], hook: Hook) {
        for partition in self.held(partitions) {
            partition.scheduler().post_hook(partition.lane(), hook);
        }
    }

    /// Waits until no job or hook of these partitions runs; returns those that did not end before the deadline.
    ///
    /// Blocks the calling thread. Unparking `parker` makes it look again whether it is to `give_up`.
    pub(super) fn wait_released(
        &self,
        partitions: &[TopicPartition],
        parker: &Arc<Parker>,
        deadline: &Deadline,
        give_up: impl Fn() -> bool,
    ) -> Vec<TopicPartition> {
        let is_released = |partition: &PartitionQueue, lane| loop {
            let now_or_never = if give_up() { &Deadline::after(Some(std::time::Duration::ZERO)) } else { deadline };
            if partition.scheduler().wait_released(lane, parker, now_or_never) {
                return true;
            }
            if give_up() || deadline.has_passed() {
                return false;
            }
        };
        let is_overdue = |partition: &&Arc<PartitionQueue>| {
            // The slots first: what goes on outside of them holds the partition's own lane, and may begin in one.
            let lanes: Vec<_> = partition.all_lanes().collect();
            !lanes.into_iter().rev().all(|lane| is_released(partition, lane))
        };
        let overdue = self.held(partitions).filter(is_overdue);
        overdue.map(|partition| partition.topic_partition().clone()).collect()
    }

    /// Whether a partition must not be read before it is known what the group has committed for it.
    pub(super) fn needs_committed(&self, at: &TopicPartition) -> bool {
        let route = self.routes.get(&*at.topic);
        route.is_some_and(|route| {
            route.start.is_some() || route.lane.concurrency.is_some() || route.lane.is_transactional
        })
    }

    /// Has reading begin at the right place; whether some partitions are not fetched yet, and to be tried again.
    pub(super) fn start(&self) -> bool {
        self.partitions.values().filter(|partition| !partition.start()).count() > 0
    }

    /// Lets go of partitions: what their jobs still report changes nothing.
    pub(super) fn close(&mut self, partitions: &[TopicPartition]) {
        for at in partitions {
            if let Some(partition) = self.partitions.remove(at) {
                partition.close();
            }
        }
    }

    fn held<'a>(&'a self, partitions: &'a [TopicPartition]) -> impl Iterator<Item = &'a Arc<PartitionQueue>> {
        partitions.iter().filter_map(|at| self.partitions.get(at))
    }
}

impl Drop for Assignment {
    fn drop(&mut self) {
        let partitions = self.partitions();
        self.close(&partitions);
    }
}
