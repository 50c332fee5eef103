//! The partitions of a group member, from the moment they are assigned until they are given back.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::partition_queue::{PartitionContext, PartitionQueue};
use super::route::Route;
use super::{Hook, StartAt};
use crate::clock::Deadline;
use crate::kafka::{CommittedOffset, TopicPartition};
use crate::wake::Parker;
use crate::{Error, Result};

/// Counts the assignments of all members of the process, so that each has a number of its own: several groups may read
/// one partition.
static GENERATIONS: AtomicU64 = AtomicU64::new(1);

/// The partitions of a group member.
pub(super) struct Assignment {
    routes: BTreeMap<String, Route>,
    partitions: BTreeMap<TopicPartition, Arc<PartitionQueue>>,
    context: PartitionContext,
}

impl Assignment {
    pub(super) fn new(routes: Vec<Route>, context: PartitionContext) -> Self {
        let routes = routes.into_iter().map(|route| (route.topic.clone(), route)).collect();
        Self { routes, partitions: BTreeMap::new(), context }
    }

    /// Adds a route, in place of an earlier one of its topic.
    pub(super) fn add(&mut self, route: Route) {
        self.routes.insert(route.topic.clone(), route);
    }

    /// Returns the topics of all routes, in order.
    pub(super) fn topics(&self) -> Vec<String> {
        self.routes.keys().cloned().collect()
    }

    /// Returns the partitions that routes name, which no group assigns.
    pub(super) fn fixed(&self) -> Vec<TopicPartition> {
        let of = |route: &Route| {
            let at = |partition: &i32| TopicPartition::new(route.topic.as_str(), *partition);
            route.partitions.iter().map(at).collect::<Vec<_>>()
        };
        self.routes.values().flat_map(of).collect()
    }

    /// Returns all partitions.
    pub(super) fn partitions(&self) -> Vec<TopicPartition> {
        self.partitions.keys().cloned().collect()
    }

    /// Returns one partition.
    pub(super) fn get(&self, at: &TopicPartition) -> Option<&Arc<PartitionQueue>> {
        self.partitions.get(at)
    }

    /// Returns the queues of all partitions.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<PartitionQueue>> {
        self.partitions.values()
    }

    /// Returns how many partitions there are.
    pub(super) fn len(&self) -> usize {
        self.partitions.len()
    }

    /// Opens partitions, which go on after the group's commits, and posts their hook `assigned`; to be called before
    /// librdkafka begins to fetch.
    pub(super) fn open(
        &mut self,
        partitions: &[TopicPartition],
        committed: &HashMap<TopicPartition, CommittedOffset>,
    ) -> Result<()> {
        for at in partitions {
            let route = self.routes.get(&*at.topic).ok_or_else(|| Error::Invalid {
                reason: format!("the group assigned {at}, which no route asked for"),
            })?;
            let partition = PartitionQueue::open(
                at.clone(),
                GENERATIONS.fetch_add(1, Ordering::Relaxed),
                &route.settings,
                &route.scheduler,
                self.context.clone(),
            )?;
            // Before the hook, which may seek.
            if let Some(committed) = committed.get(at) {
                partition.resume_from(committed);
            }
            route.scheduler.post_hook(partition.unit(), Hook::Assigned);
            if let Some(earlier) = self.partitions.insert(at.clone(), partition) {
                earlier.close();
            }
        }
        Ok(())
    }

    /// Returns where the route has a partition without a committed offset begin, if it does.
    pub(super) fn start_of(&self, at: &TopicPartition) -> Option<StartAt> {
        self.routes.get(&*at.topic)?.start
    }

    /// Begins no job of these partitions from now on.
    pub(super) fn withdraw(&self, partitions: &[TopicPartition]) {
        for partition in self.open_ones(partitions) {
            partition.withdraw();
        }
    }

    /// Posts a hook, which runs after the present jobs of the partitions.
    pub(super) fn post_hook(&self, partitions: &[TopicPartition], hook: Hook) {
        for partition in self.open_ones(partitions) {
            partition.scheduler().post_hook(partition.unit(), hook);
        }
    }

    /// Waits until no job or hook of these partitions runs. Returns the partitions that were not released before the
    /// deadline.
    ///
    /// Blocks the calling thread. Unparking `parker` makes it check `is_urgent` again, which ends the wait.
    pub(super) fn wait_released(
        &self,
        partitions: &[TopicPartition],
        parker: &Arc<Parker>,
        deadline: &Deadline,
        is_urgent: impl Fn() -> bool,
    ) -> Vec<TopicPartition> {
        let is_released = |partition: &PartitionQueue, unit| loop {
            let until = if is_urgent() { &Deadline::after(Some(std::time::Duration::ZERO)) } else { deadline };
            if partition.scheduler().wait_released(unit, parker, until) {
                return true;
            }
            if is_urgent() || deadline.has_passed() {
                return false;
            }
        };
        let is_overdue = |partition: &&Arc<PartitionQueue>| {
            // The slots first: an operation that goes on outside of them is pending for the partition's own unit, and
            // may begin in one.
            let units: Vec<_> = partition.all_units().collect();
            !units.into_iter().rev().all(|unit| is_released(partition, unit))
        };
        let overdue = self.open_ones(partitions).filter(is_overdue);
        overdue.map(|partition| partition.topic_partition().clone()).collect()
    }

    /// Returns whether a partition must not be read before the group's committed offset is known.
    pub(super) fn needs_committed(&self, at: &TopicPartition) -> bool {
        let route = self.routes.get(&*at.topic);
        route.is_some_and(|route| {
            route.start.is_some() || route.settings.concurrency.is_some() || route.settings.is_transactional
        })
    }

    /// Closes partitions: later results of their jobs change nothing.
    pub(super) fn close(&mut self, partitions: &[TopicPartition]) {
        for at in partitions {
            if let Some(partition) = self.partitions.remove(at) {
                partition.close();
            }
        }
    }

    fn open_ones<'a>(&'a self, partitions: &'a [TopicPartition]) -> impl Iterator<Item = &'a Arc<PartitionQueue>> {
        partitions.iter().filter_map(|at| self.partitions.get(at))
    }
}

impl Drop for Assignment {
    fn drop(&mut self) {
        let partitions = self.partitions();
        self.close(&partitions);
    }
}
