//! The invariants, checked at each step that could break one. A broken one is a panic that names it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use awoke_engine::consume::PartitionQueue;
use awoke_engine::kafka::{Batch, Cluster, CommittedOffset, TopicPartition};
use awoke_engine::wake::simulation::trace;

use crate::results;

/// A message that a handler has, or had.
#[derive(Clone, Debug)]
pub struct Handled {
    pub offset: i64,
    /// The number that its producer gave it.
    pub id: u64,
    /// Messages of one lane run one after another; `None` runs beside all others.
    pub lane: Option<Vec<u8>>,
}

/// The messages of the places `first..end` of a batch.
pub fn handled(batch: &Batch, places: impl Iterator<Item = usize>, order: Order) -> Vec<Handled> {
    let message = |place| {
        let message = batch.message(place);
        let id = id_of(message.value().unwrap_or_default());
        Handled { offset: message.offset(), id, lane: order.lane(message.key()) }
    };
    places.map(message).collect()
}

/// The number that is in a value.
pub fn id_of(value: &[u8]) -> u64 {
    value.try_into().map_or(u64::MAX, u64::from_le_bytes)
}

/// Which messages of a partition are in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    All,
    PerKey,
    None,
}

impl Order {
    pub fn lane(self, key: Option<&[u8]>) -> Option<Vec<u8>> {
        match self {
            Self::All => Some(Vec::new()),
            Self::PerKey => key.map(<[u8]>::to_vec),
            Self::None => None,
        }
    }
}

/// The state of all messages.
pub struct Checks {
    cluster: Arc<Cluster>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Messages whose handler has ended.
    ran: BTreeSet<u64>,
    /// Those of them whose results are acknowledged.
    done: BTreeSet<u64>,
    /// Messages that a job has recorded, by assignment.
    recorded: BTreeSet<(u64, u64)>,
    /// The job that runs in each lane of an assignment and epoch: after a seek, jobs of before run on.
    running: BTreeMap<(u64, u64, Vec<u8>), u64>,
    jobs: u64,
    committed: BTreeMap<TopicPartition, i64>,
    /// Partitions in which a seek or a truncation has allowed messages to run again.
    rewound: BTreeSet<TopicPartition>,
    truncated: BTreeSet<TopicPartition>,
    /// The topics of exactly-once routes, and how many partitions the tables of these have, if they have one.
    exactly_once: BTreeMap<Arc<str>, (Order, Option<i32>)>,
}

impl Checks {
    pub fn new(cluster: &Arc<Cluster>) -> Arc<Self> {
        let checks = Arc::new(Self { cluster: Arc::clone(cluster), state: Mutex::default() });
        let other = Arc::downgrade(&checks);
        cluster.on_commit(move |_, at, committed| {
            if let Some(checks) = other.upgrade() {
                checks.commit(at, committed);
            }
        });
        checks
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the results of a topic checked. A message of it is done when a reader of committed messages sees its result.
    pub fn note_exactly_once(&self, topic: &str, order: Order, rows: Option<i32>) {
        self.state().exactly_once.insert(topic.into(), (order, rows));
    }

    /// Notes the results that are visible now. Returns the order of an exactly-once route, and how many partitions its
    /// table has.
    fn note_visible(&self, topic: &str) -> Option<(Order, Option<i32>)> {
        let mut state = self.state();
        let found = state.exactly_once.get(topic).copied()?;
        state.done.extend(results::visible(&self.cluster, topic));
        Some(found)
    }

    /// Allows the messages of a partition to run again.
    pub fn note_rewound(&self, at: &TopicPartition, is_truncated: bool) {
        let mut state = self.state();
        state.rewound.insert(at.clone());
        if is_truncated {
            state.truncated.insert(at.clone());
        }
    }

    /// A job begins with these messages. Returns its number.
    pub fn begin(&self, partition: &PartitionQueue, epoch: u64, messages: &[Handled], order: Order) -> u64 {
        let (at, generation) = (partition.topic_partition(), partition.generation());
        trace(|| format!("begin {at} {:?}", messages.iter().map(|each| each.offset).collect::<Vec<_>>()));
        let is_current = partition.check_current().is_ok();
        let committed = self.cluster.committed("group", at).map_or(0, |committed| committed.offset);
        let records = self.cluster.records(at);
        let mut state = self.state();
        state.jobs += 1;
        let job = state.jobs;
        for message in messages {
            if let Some(lane) = &message.lane {
                let earlier = *state.running.entry((generation, epoch, lane.clone())).or_insert(job);
                assert_eq!(earlier, job, "two jobs of one lane run at once: {at} {message:?}");
            }
            if !is_current {
                continue;
            }
            if !state.rewound.contains(at) {
                let is_again = state.recorded.contains(&(generation, message.id));
                assert!(!is_again, "a completed message runs again in one assignment: {at} {message:?}");
                // A member that was lost does not know what the next owner commits.
                let is_committed = message.offset < committed && !self.cluster.has_lost_member();
                assert!(!is_committed, "a committed message runs again: {at} {message:?} of {committed}");
            }
            let is_in_log =
                records.iter().any(|record| id_of(record.value.as_deref().unwrap_or_default()) == message.id);
            if message.lane.is_none() || !is_in_log {
                continue;
            }
            for record in records.iter().take_while(|record| record.offset < message.offset) {
                let id = id_of(record.value.as_deref().unwrap_or_default());
                let is_before = order.lane(record.key.as_deref()) == message.lane;
                let is_in_job = messages.iter().any(|each| each.id == id);
                let is_in_order = !is_before || is_in_job || state.ran.contains(&id);
                assert!(
                    is_in_order,
                    "a message runs before an earlier one of its lane: {at} {message:?} {}",
                    record.offset
                );
            }
        }
        job
    }

    /// The handler of a message has ended.
    pub fn ran(&self, message: &Handled) {
        self.state().ran.insert(message.id);
    }

    /// The handler of a message has ended, and its results are acknowledged.
    pub fn done(&self, message: &Handled) {
        let mut state = self.state();
        state.ran.insert(message.id);
        state.done.insert(message.id);
    }

    /// A job has recorded that these messages are done.
    pub fn recorded(&self, partition: &PartitionQueue, messages: &[Handled]) {
        let generation = partition.generation();
        self.note_visible(&partition.topic_partition().topic);
        let mut state = self.state();
        for message in messages {
            assert!(state.done.contains(&message.id), "a message was recorded that is not done: {message:?}");
            state.recorded.insert((generation, message.id));
        }
    }

    /// A job has ended, or is about to.
    pub fn end(&self, job: u64) {
        self.state().running.retain(|_, running| *running != job);
    }

    /// The hook of a partition that is given back begins.
    pub fn assert_released(&self, partition: &PartitionQueue) {
        let (at, generation, state) = (partition.topic_partition(), partition.generation(), self.state());
        let is_running = state.running.keys().any(|(of, ..)| *of == generation);
        assert!(!is_running, "a partition is given back while jobs run: {at}");
    }

    /// A commit took effect.
    fn commit(&self, at: &TopicPartition, committed: &CommittedOffset) {
        let records = self.cluster.records(at);
        let order = self.note_visible(&at.topic);
        let mut state = self.state();
        if let Some((_, Some(partitions))) = order {
            results::check_acts(&self.cluster, &at.topic, partitions);
        }
        if let Some((order, rows)) = order.filter(|_| !state.rewound.contains(at)) {
            results::check(&self.cluster, at, order, committed);
            if rows.is_some() {
                results::check_rows(&self.cluster, at, order);
            }
        }
        let before = state.committed.insert(at.clone(), committed.offset).unwrap_or(0);
        let is_back = committed.offset < before && !state.rewound.contains(at);
        assert!(!is_back, "the committed offset goes back: {at} from {before} to {}", committed.offset);
        if state.truncated.contains(at) && committed.leader_epoch != self.cluster.epoch(at) {
            return; // It is of the log before.
        }
        for record in records.iter().take_while(|record| record.offset < committed.offset) {
            let is_done = state.done.contains(&id_of(record.value.as_deref().unwrap_or_default()));
            assert!(
                is_done,
                "the committed offset passes an unfinished message: {at} {} of {}",
                record.offset, committed.offset
            );
        }
    }

    /// Returns why not all is done and committed; `None` when it is.
    pub fn missing(&self, partitions: &[TopicPartition]) -> Option<String> {
        partitions.iter().for_each(|at| _ = self.note_visible(&at.topic));
        let state = self.state();
        for at in partitions {
            let records = self.cluster.records(at);
            let Some(last) = records.last() else { continue };
            for record in &records {
                let id = id_of(record.value.as_deref().unwrap_or_default());
                if !state.done.contains(&id) {
                    return Some(format!("{at} {} is not done", record.offset));
                }
            }
            let committed = self.cluster.committed("group", at).map_or(0, |committed| committed.offset);
            let is_beyond = committed > self.cluster.end(at) && !state.truncated.contains(at);
            if committed <= last.offset || is_beyond {
                return Some(format!("{at} is committed to {committed}, its last message is {}", last.offset));
            }
        }
        (!state.running.is_empty()).then(|| format!("jobs run: {:?}", state.running))
    }
}
