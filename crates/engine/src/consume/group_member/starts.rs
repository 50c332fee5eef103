//! Where the reading of partitions begins, and begins again.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use super::thread::Member;
use crate::clock::{self, Deadline};
use crate::consume::StartAt;
use crate::consume::finished::split_topic;
use crate::kafka::{
    Code, CommittedOffset, EventKind, Position, Queue, QueueEvent, TopicId, TopicPartition, TopicPartitionList,
};
use crate::{Error, Result};

/// The time for which brokers are asked where to begin: twice the default time-out of a transaction, which may hold
/// that up.
const LOOKUP_WITHIN: Duration = Duration::from_mins(2);

/// The time that they may take for committed offsets, at first and at most. A member that is closed waits that long,
/// too: librdkafka goes on asking while a transaction holds an offset up.
const LOOKUP_TIMEOUT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(4));

/// After this time they are asked again: a broker does not tell when a transaction has ended. librdkafka has asked
/// several times by then.
pub(super) const LOOKUP_AGAIN: Duration = Duration::from_millis(100);

/// The time that brokers have to tell the ids of topics, before they are asked again.
const IDS_WITHIN: Duration = Duration::from_secs(2);

/// The time that leaders have to tell where partitions end. They are not asked for longer: a partition without a leader
/// would hold up all others.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// librdkafka's `RD_KAFKA_OFFSET_INVALID`: begin where the group has committed.
const NO_OFFSET: i64 = -1001;

/// Returns whether a committed offset cannot be of a log that ends here, and is led in this epoch. An epoch never goes
/// back, and no leader tells an end before it knows all that was committed.
const fn is_beyond(committed: &CommittedOffset, end: Position) -> bool {
    committed.offset > end.offset || (end.leader_epoch >= 0 && committed.leader_epoch > end.leader_epoch)
}

const fn at_offset(offset: i64) -> Position {
    Position { offset, leader_epoch: -1 }
}

impl Member {
    /// Looks up what the group has committed for partitions; those without a commit are left out. Blocks.
    pub(super) fn committed(&self, partitions: &[TopicPartition]) -> Result<HashMap<TopicPartition, CommittedOffset>> {
        if partitions.is_empty() {
            return Ok(HashMap::new());
        }
        let mut timeout = LOOKUP_TIMEOUT.0;
        let committed = self.insist(|| {
            let answer = self.shared.client.committed_within(partitions, timeout);
            timeout = LOOKUP_TIMEOUT.1.min(timeout * 2);
            answer
        })?;
        Ok(partitions.iter().cloned().zip(committed).filter_map(|(at, committed)| Some((at, committed?))).collect())
    }

    /// Returns partitions with the offsets to begin at: the group's committed one, or else the route's start. Where
    /// there is neither, librdkafka begins as `auto.offset.reset` says. Blocks.
    ///
    /// librdkafka (2.12.1) would ask for the committed ones by itself. But it takes an offset that a transaction holds
    /// up for none at all when the assignment changes meanwhile, and would begin again.
    pub(super) fn with_starts(
        &self,
        partitions: &[TopicPartition],
        committed: &HashMap<TopicPartition, CommittedOffset>,
    ) -> Result<TopicPartitionList> {
        let mut with_starts = TopicPartitionList::new();
        for at in partitions {
            let position = match (committed.get(at), self.assignment.start_of(at)) {
                (Some(found), _) => Some(Position { offset: found.offset, leader_epoch: found.leader_epoch }),
                (None, Some(start)) => Some(at_offset(self.insist(|| start.offset(&self.shared.client, at))?)),
                (None, None) => None,
            };
            with_starts.add(at, position)?;
        }
        Ok(with_starts)
    }

    /// Asks again while the answer is a retriable error. An offset that a transaction holds up is known when that has
    /// ended, at the latest by its time-out. Blocks.
    fn insist<T>(&self, mut ask: impl FnMut() -> Result<T>) -> Result<T> {
        let until = clock::real_now() + LOOKUP_WITHIN;
        loop {
            match ask() {
                Err(error) if error.is_retriable() && clock::real_now() < until && !self.shared.is_ending() => {
                    self.wait_to_ask_again();
                }
                answer => return answer,
            }
        }
    }

    /// Waits for a moment. Where no group assigns partitions, nothing else happens until they are known: errors, for
    /// example a permission that is missing, are told meanwhile.
    fn wait_to_ask_again(&self) {
        let until = Deadline::after(Some(LOOKUP_AGAIN));
        if self.fixed.is_none() {
            self.shared.parker.park_until(&until);
        } else if let Some(event) = self.shared.queue.poll(&until)
            && event.kind() == EventKind::Error
        {
            self.on_error(&event);
        }
    }

    /// Has reading begin at the right place. Returns whether some partitions are not fetched yet, and are to be tried
    /// again.
    pub(super) fn start_reading(&self) -> bool {
        let mut is_unfinished = false;
        for partition in self.assignment.all().filter(|partition| !partition.start()) {
            let at = partition.topic_partition();
            let has_ended = self.shared.open_partitions.has_fetching_ended(at);
            let Some(offset) = partition.sought_offset().filter(|_| has_ended) else {
                is_unfinished = true;
                continue;
            };
            // librdkafka (2.12.1) seeks only where fetching goes on.
            match self.fetch_again(at, offset) {
                Ok(()) => partition.note_fetched_again(offset),
                Err(error) => partition.restart_refused(error.code(), format!("could not be read again: {error}")),
            }
        }
        is_unfinished
    }

    /// Fetches a partition again from its first message.
    pub(super) fn restart(&self, at: &TopicPartition) {
        let Some(partition) = self.assignment.get(at) else { return };
        partition.restarted();
        if let Err(error) = self.fetch_again(at, StartAt::EARLIEST) {
            partition.restart_refused(error.code(), format!("could not be read from its first message: {error}"));
        }
    }

    fn fetch_again(&self, at: &TopicPartition, offset: i64) -> Result<()> {
        self.shared.client.assign(&self.restart_list(at, offset)?)
    }

    /// Returns the partitions to assign for a restart: the partition alone, or all where an assignment is replaced as a
    /// whole.
    fn restart_list(&self, at: &TopicPartition, offset: i64) -> Result<TopicPartitionList> {
        let mut list = TopicPartitionList::new();
        list.add(at, Some(at_offset(offset)))?;
        if self.shared.client.is_cooperative() {
            self.shared.client.unassign(&list)?;
            return Ok(list);
        }
        let mut unread = Vec::new();
        for each in self.assignment.all().filter(|each| each.topic_partition() != at) {
            match each.resume_offset() {
                Some(next) => list.add(each.topic_partition(), Some(at_offset(next)))?,
                None => unread.push(each.topic_partition().clone()),
            }
        }
        let starts = self.with_starts(&unread, &self.committed(&unread)?)?;
        for (at, offset, _) in starts.entries() {
            list.add(&at, (offset != NO_OFFSET).then(|| at_offset(offset)))?;
        }
        Ok(list)
    }

    /// Returns what is to be assigned and what the group has committed; `None` when the member ends, or has failed for
    /// good.
    pub(super) fn starts_of(
        &self,
        partitions: &[TopicPartition],
    ) -> Option<(TopicPartitionList, HashMap<TopicPartition, CommittedOffset>)> {
        let found = self.committed(partitions).and_then(|mut committed| {
            let begins = self.begin_anew(partitions, &mut committed)?;
            Ok((self.with_starts(partitions, &begins)?, committed))
        });
        match found {
            Ok(found) => Some(found),
            Err(_) if self.shared.is_ending() => None,
            // librdkafka finds out by itself, then. Each assignment must be answered.
            Err(_) if !partitions.iter().any(|at| self.assignment.needs_committed(at)) => {
                let list = TopicPartitionList::of(partitions).unwrap_or_else(|_| TopicPartitionList::new());
                Some((list, HashMap::new()))
            }
            Err(error) => {
                self.report_unknown_start(&error);
                None
            }
        }
    }

    /// Looks up the ids of the topics, and has partitions begin at their first message whose topic was made again since
    /// the commit. Returns the offsets to begin at. Blocks.
    ///
    /// The offset and the leader epoch of such a commit are of another log: a broker that is asked with them would have
    /// reading begin after messages that no member has seen. Where the commit or the broker tells no id, the log does:
    /// it is another one if it ends before the committed offset, or has an earlier leader epoch.
    fn begin_anew(
        &self,
        partitions: &[TopicPartition],
        committed: &mut HashMap<TopicPartition, CommittedOffset>,
    ) -> Result<HashMap<TopicPartition, CommittedOffset>> {
        let ids = self.ids_of(partitions)?;
        let id_of = |found: &CommittedOffset| split_topic(found.metadata.as_deref().unwrap_or_default()).0;
        let without_ids =
            committed.iter().filter(|(at, found)| id_of(found).is_none() || !ids.contains_key(&*at.topic));
        let ends = self.ends_of(&without_ids.map(|(at, _)| at.clone()).collect::<Vec<_>>())?;
        // Such a member is to stop at an offset that is out of range.
        let may_judge = self.config.get("auto.offset.reset") != Some("error");
        let mut begins = committed.clone();
        for (at, found) in &mut *committed {
            let is_of_another_log = match (id_of(found), ids.get(&*at.topic)) {
                (Some(before), Some(now)) => *now != before,
                _ => may_judge && ends.get(at).is_some_and(|end| is_beyond(found, *end)),
            };
            if is_of_another_log {
                // Kept without what is of the log before: the first message below tells that the log is another one.
                (found.leader_epoch, found.metadata) = (-1, None);
                begins.insert(at.clone(), CommittedOffset { offset: StartAt::EARLIEST, ..found.clone() });
            }
        }
        self.topic_ids.set(ids);
        Ok(begins)
    }

    /// Returns the ids of the topics of partitions; those of which a broker tells none are left out. Blocks.
    fn ids_of(&self, partitions: &[TopicPartition]) -> Result<HashMap<String, TopicId>> {
        let client = &self.shared.client;
        let topics: BTreeSet<_> = partitions.iter().map(|at| at.topic.to_string()).collect();
        let topics: Vec<_> = topics.into_iter().collect();
        if topics.is_empty() {
            return Ok(HashMap::new());
        }
        let queue = Queue::new(client);
        let found = self.insist(|| {
            client.ask_for_topics(&topics, &queue, IDS_WITHIN)?;
            let answer = queue.poll(&Deadline::after(Some(IDS_WITHIN)));
            let code = answer.as_ref().map_or(Code::TIMED_OUT, QueueEvent::code);
            code.check("look up the ids of topics")?;
            Ok(answer.map(|event| event.topics()).unwrap_or_default())
        })?;
        Ok(found.into_iter().filter_map(|topic| Some((topic.name, topic.id?))).collect())
    }

    /// Returns the ends of logs, each with its leader epoch; those that no leader tells in time are left out. Blocks.
    fn ends_of(&self, partitions: &[TopicPartition]) -> Result<HashMap<TopicPartition, Position>> {
        if partitions.is_empty() {
            return Ok(HashMap::new());
        }
        let client = &self.shared.client;
        let queue = Queue::new(client);
        let until = clock::real_now() + ENDS_WITHIN;
        let mut found = HashMap::new();
        loop {
            let missing: Vec<_> = partitions.iter().filter(|at| !found.contains_key(*at)).cloned().collect();
            client.ask_for_ends(&missing, &queue, ENDS_WITHIN)?;
            let answer = queue.poll(&Deadline::after(Some(ENDS_WITHIN)));
            found.extend(answer.map(|event| event.ends()).unwrap_or_default());
            if found.len() >= partitions.len() || clock::real_now() >= until || self.shared.is_ending() {
                return Ok(found);
            }
            self.wait_to_ask_again();
        }
    }

    /// Assigned without a known start, reading would begin somewhere else: messages would be lost, or processed again.
    fn report_unknown_start(&self, error: &Error) {
        let text = format!("could not find out where to begin: {error}");
        self.shared.client.emit(crate::events::What::Error { code: error.code(), text, fatal: true });
    }
}
