//! The lanes of a partition whose route works on several of its messages at once.
//!
//! A lane is made when a message comes for it and dropped when its last message is done, so there are as many as there
//! are keys under way. A limited number of jobs run at once, each in a *job slot*, which is a unit of the scheduler. A
//! job takes the lane that has waited longest, and others where user code wants batches, or where jobs are short
//! (`share`). It leases them until it ends, and returns them. A lane in a back-off keeps its messages and no slot.
//!
//! There is no barrier between batches. Two bounds limit the messages that are admitted: those that are not done, and
//! the commit gap, from the first of those to the last. At either bound the partition admits no more.
//!
//! The lock is held for moves only, and no other lock is taken under it.

mod lane;
mod numbers;
mod share;
mod state;

use std::collections::VecDeque;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub(super) use share::GIVE_ON_AFTER;
pub use share::Share;
use share::ShortJobs;
use state::State;

use super::finished::{Earlier, write_metadata};
use super::offsets::ToCommit;
use super::shared_job::SharedLanes;
use super::watermark::{Change, CommitGap};
use crate::clock;
use crate::kafka::{Batch, Client, Loose, Position, TopicPartition};
use crate::{Error, Result};

/// The property that messages of one lane share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneBy {
    /// Their key; a message without a key has a lane of its own.
    Key,
    /// Nothing: each has a lane of its own.
    Nothing,
    /// A number that the route gives each message.
    Route,
}

impl FromStr for LaneBy {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self> {
        match word {
            "key" => Ok(Self::Key),
            "nothing" => Ok(Self::Nothing),
            "route" => Ok(Self::Route),
            other => Err(Error::Invalid { reason: format!("lanes are by key, nothing or route, not {other:?}") }),
        }
    }
}

/// The settings of the work on several messages of a partition at once.
#[derive(Clone, Debug)]
pub struct Concurrency {
    /// The most jobs at once.
    pub jobs_max: usize,
    /// The property that messages of one lane share.
    pub by: LaneBy,
    /// The most messages that are admitted and not done.
    pub in_flight_max: usize,
    /// The most messages from the first that is not done on.
    pub commit_gap_max: usize,
    /// The lanes that one job may lease.
    pub share: Share,
    /// After a crash, how many messages are processed one by one.
    pub careful_messages: usize,
    /// Skips messages; `None` skips none.
    pub skip: Option<Arc<dyn SkipPolicy>>,
}

/// Decides which messages are completed without being processed. Any thread; must not block.
pub trait SkipPolicy: std::fmt::Debug + Send + Sync {
    /// Returns whether this message is skipped, at a time in milliseconds since 1970.
    fn skips(&self, message: &Loose, now_ms: u64) -> bool;
}

/// A lane that a job leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leased {
    number: u64,
    /// One past the index of its last message in the job's batch. Messages of several lanes may be mixed: these lanes
    /// have one end.
    pub(super) end: usize,
}

/// The lanes and the slot of a job.
#[derive(Debug)]
pub(super) struct LaneLease {
    lanes: Vec<Leased>,
    /// The number of the reading of the partition: after a seek, the results of the job change nothing.
    pub(super) epoch: u64,
    /// The job slot; `None` when the job has left it.
    pub(super) slot: Option<usize>,
    /// The number of messages that user code was called for, and the time that it took; set before the slot is left.
    pub(super) ran: Option<(usize, Duration)>,
}

impl LaneLease {
    /// Makes a lease for messages whose lanes another job goes on to lease.
    pub(super) const fn without_lanes(&self) -> Self {
        Self { lanes: Vec::new(), epoch: self.epoch, slot: None, ran: None }
    }

    /// Returns whether the job leases several lanes, one after another.
    pub(super) fn has_several(&self) -> bool {
        self.lanes.first().is_some_and(|first| self.lanes.last().is_some_and(|last| first.end < last.end))
    }

    /// Returns where the lane of the message at this index ends in the job's batch.
    pub(super) fn end_of_lane(&self, index: usize) -> usize {
        let lane = self.lanes.get(self.lanes.partition_point(|lane| lane.end <= index));
        lane.or(self.lanes.last()).map_or(usize::MAX, |lane| lane.end)
    }

    /// Splits off the lanes behind this index, which no job has then.
    pub(super) fn split_off(&mut self, index: usize) -> Self {
        let lanes = self.lanes.split_off(self.lanes.partition_point(|lane| lane.end <= index));
        Self { lanes, ..self.without_lanes() }
    }
}

/// The messages of a job.
pub(super) struct LaneWork {
    pub(super) messages: LaneMessages,
    pub(super) lease: LaneLease,
}

/// Messages of lanes, and how often the first was tried.
pub(super) struct LaneMessages {
    pub(super) batch: Arc<Batch>,
    pub(super) first: usize,
    pub(super) end: usize,
    pub(super) attempts: u32,
}

/// Notifications to send once the lock is released.
#[derive(Debug, Default)]
pub(super) struct Notifications {
    /// Slots that have something to do.
    pub(super) slots: Vec<usize>,
    /// The partition may admit more messages.
    pub(super) has_capacity: bool,
    /// There is something to commit.
    pub(super) has_commit: bool,
}

impl Notifications {
    fn add(&mut self, other: Self) {
        self.slots.extend(other.slots);
        self.has_capacity |= other.has_capacity;
        self.has_commit |= other.has_commit;
    }
}

/// The lanes of a partition.
pub(super) struct Lanes {
    at: TopicPartition,
    settings: Concurrency,
    client: Arc<Client>,
    /// The bytes of a commit's metadata that are for others.
    taken: usize,
    state: Mutex<State>,
    /// Jobs of several lanes, the oldest first.
    shared: Mutex<VecDeque<SharedLanes>>,
}

impl Lanes {
    pub(super) fn new(at: TopicPartition, settings: Concurrency, client: Arc<Client>, taken: usize) -> Self {
        let settings = Concurrency { jobs_max: settings.jobs_max.max(1), ..settings };
        let state = Mutex::new(State::new(settings.jobs_max, settings.share));
        Self { at, settings, client, taken, state, shared: Mutex::default() }
    }

    pub(super) const fn settings(&self) -> &Concurrency {
        &self.settings
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on after the last commit of an earlier process, and skips messages that the commit's metadata says are
    /// done.
    ///
    /// `is_careful`: that process crashed. Messages are processed one by one until those that may be the cause are
    /// done.
    pub(super) fn resume_from(&self, committed: i64, earlier: Earlier, is_careful: bool) {
        let mut state = self.state();
        if is_careful {
            let last = earlier.end().unwrap_or(committed);
            state.careful_until = last.saturating_add(self.settings.careful_messages as i64);
        }
        state.earlier = earlier;
    }

    /// Returns how many more messages may be admitted now. When there are none, a notification tells when there are.
    pub(super) fn capacity(&self) -> usize {
        let mut state = self.state();
        let capacity = state.capacity(&self.settings);
        state.wants_capacity = capacity == 0;
        capacity
    }

    /// Admits messages, in offset order. `lane_numbers` are the numbers of their lanes, where the route gives them.
    pub(super) fn admit(&self, batch: Batch, lane_numbers: Option<&[u64]>) -> Notifications {
        let now = clock::now();
        let now_ms = clock::wall().as_millis() as u64;
        let mut skipped = Vec::new();
        let mut notifications = Notifications::default();
        let mut state = self.state();
        for (index, message) in batch.into_loose().into_iter().enumerate() {
            let (offset, leader_epoch) = (message.offset(), message.leader_epoch());
            let is_skipped = self.settings.skip.as_ref().is_some_and(|policy| policy.skips(&message, now_ms));
            // Always asked: it notices by the epoch that the log is another one.
            let was_done = state.earlier.has(offset, leader_epoch);
            if is_skipped || was_done {
                let change = state.watermark.skip(offset, leader_epoch, now);
                notifications.has_commit |= change == Change::Moved;
                skipped.push(message);
                continue;
            }
            let given = lane_numbers.and_then(|numbers| numbers.get(index)).copied();
            let number = state::lane_number(self.settings.by, offset, message.key(), given);
            state.admit(number, message, now);
        }
        state.end_care();
        state.wake_slots(&mut notifications);
        drop(state);
        drop(self.batch_of(skipped));
        notifications
    }

    /// Takes messages for the job of a slot; `None`, and the slot is idle, when there are none. The slot may have been
    /// woken for more lanes than it takes now: then others are woken.
    pub(super) fn take(&self, slot: usize) -> (Option<LaneWork>, Notifications) {
        let mut notifications = Notifications::default();
        let mut state = self.state();
        state.start_slot(slot);
        let epoch = state.epoch;
        if let Some((messages, lanes)) = state.due_retry() {
            state.wake_slots(&mut notifications);
            let lease = LaneLease { lanes, epoch, slot: Some(slot), ran: None };
            return (Some(LaneWork { messages, lease }), notifications);
        }
        let (messages, lanes) = state.take_lanes(&self.settings);
        if lanes.is_empty() {
            state.rest(slot);
            return (None, notifications);
        }
        state.wake_slots(&mut notifications);
        drop(state);
        let batch = Arc::new(self.batch_of(messages));
        let messages = LaneMessages { first: 0, end: batch.len(), batch, attempts: 0 };
        let lease = LaneLease { lanes, epoch, slot: Some(slot), ran: None };
        (Some(LaneWork { messages, lease }), notifications)
    }

    /// Watches a job of several lanes. Returns whether it is the only one: then `give_on` has to be called after
    /// `GIVE_ON_AFTER`.
    pub(super) fn watch(&self, job: SharedLanes) -> bool {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.push_back(job);
        shared.len() == 1
    }

    /// Takes lanes away from jobs that run for longer than `GIVE_ON_AFTER`, so that no slow message delays other lanes.
    /// Returns when to call it again, if a job is watched.
    pub(super) fn give_on(&self) -> (Option<Instant>, Notifications) {
        let (now, mut notifications) = (clock::now(), Notifications::default());
        loop {
            let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(job) = shared.pop_front_if(|job| job.since + GIVE_ON_AFTER <= now) else {
                return (shared.front().map(|job| job.since + GIVE_ON_AFTER), notifications);
            };
            drop(shared);
            let Some((mut lease, messages)) = job.take_rest() else { continue };
            notifications.add(self.park(&mut lease, messages, now).1);
        }
    }

    /// Ends the back-off of all messages that wait to be tried again.
    pub(super) fn clear_backoff(&self) -> Notifications {
        let now = clock::now();
        let mut notifications = Notifications::default();
        let mut state = self.state();
        let parked = std::mem::take(&mut state.parked);
        state.parked = parked.into_iter().map(|((_, number), job)| ((now, number), job)).collect();
        state.wake_slots(&mut notifications);
        notifications
    }

    /// Wakes slots for messages whose back-off is over.
    pub(super) fn wake_due(&self) -> Notifications {
        let mut notifications = Notifications::default();
        self.state().wake_slots(&mut notifications);
        notifications
    }

    /// Marks messages as done.
    pub(super) fn done(&self, lease: &LaneLease, offsets: impl Iterator<Item = i64>) -> Notifications {
        let mut notifications = Notifications::default();
        let mut state = self.state();
        if state.epoch == lease.epoch {
            for offset in offsets {
                if state.watermark.done(offset) != Change::None {
                    state.in_flight -= 1;
                    notifications.has_commit = true;
                }
            }
            self.wake_admission(&mut state, &mut notifications);
        }
        notifications
    }

    /// Ends a job that leaves no messages. Returns whether its slot has more to do.
    pub(super) fn release(&self, lease: &mut LaneLease) -> (bool, Notifications) {
        let mut notifications = Notifications::default();
        let mut state = self.state();
        if state.epoch == lease.epoch {
            for lane in std::mem::take(&mut lease.lanes) {
                state.release(lane.number);
            }
            self.wake_admission(&mut state, &mut notifications);
        }
        let has_more = state.leave_slot(lease, &mut notifications);
        (has_more, notifications)
    }

    /// Ends a job with messages that are to be tried again, not before a moment. If it is not now, only the lane of the
    /// first message waits for it, and the others go on. Returns whether its slot has more to do.
    pub(super) fn park(&self, lease: &mut LaneLease, messages: LaneMessages, moment: Instant) -> (bool, Notifications) {
        let mut notifications = Notifications::default();
        let mut state = self.state();
        if state.epoch == lease.epoch {
            let mut lanes = std::mem::take(&mut lease.lanes);
            let now = clock::now();
            // The lanes are in the order of their messages.
            let done = lanes.partition_point(|lane| lane.end <= messages.first);
            lanes.drain(..done).for_each(|lane| state.release(lane.number));
            let first_end = lanes.first().map_or(messages.end, |lane| lane.end);
            let is_apart = moment > now;
            let others = lanes.split_off(lanes.partition_point(|lane| lane.end == first_end || !is_apart));
            let first_end = if others.is_empty() { messages.end } else { first_end };
            if !others.is_empty() {
                let batch = Arc::clone(&messages.batch);
                let rest = LaneMessages { batch, first: first_end, end: messages.end, attempts: 0 };
                state.park(rest, others, now);
            }
            state.park(LaneMessages { end: first_end, ..messages }, lanes, moment);
        }
        let has_more = state.leave_slot(lease, &mut notifications);
        (has_more, notifications)
    }

    /// Takes a job out of its slot; it goes on. Returns whether the slot has more to do.
    pub(super) fn leave_slot(&self, lease: &mut LaneLease) -> (bool, Notifications) {
        let mut notifications = Notifications::default();
        let has_more = self.state().leave_slot(lease, &mut notifications);
        (has_more, notifications)
    }

    /// Drops everything, because reading goes on from another offset.
    pub(super) fn reset(&self) {
        let before = self.state().reset();
        self.free(before);
    }

    /// Returns the ordinals of messages, counted from 0 in the order in which they were admitted.
    pub(super) fn ordinals(&self, lease: &LaneLease, offsets: impl Iterator<Item = i64>) -> Vec<Option<u64>> {
        let state = self.state();
        offsets.map(|offset| state.watermark.ordinal_of(offset).filter(|_| state.epoch == lease.epoch)).collect()
    }

    /// Returns the position to commit, with the metadata for the messages that are done after it.
    pub(super) fn position(&self, note: Option<(i64, &str)>) -> Option<ToCommit> {
        let state = self.state();
        let (finished, epoch) = state.finished();
        // Before the first message is done, only for the sake of the metadata.
        let is_noted = note.is_some() || !finished.is_empty();
        let first = || state.watermark.first().filter(|_| is_noted);
        let position = state.watermark.position().or_else(first)?;
        drop(state);
        let note = note.filter(|(offset, _)| *offset == position.offset).map_or("", |(_, text)| text);
        let (metadata, is_whole) = write_metadata(note, position.offset, &finished, epoch, self.taken);
        Some(ToCommit { position, metadata, is_whole })
    }

    /// Returns the offset of the watermark; `None` before any message was admitted.
    pub(super) fn offset(&self) -> Option<i64> {
        self.state().watermark.offset()
    }

    /// Returns the next offset to commit.
    pub(super) fn stored(&self) -> Option<i64> {
        self.state().watermark.position().map(|position| position.offset)
    }

    /// Returns how far the watermark is behind; `None` when all messages are done.
    pub(super) fn commit_gap(&self) -> Option<CommitGap> {
        self.state().watermark.commit_gap()
    }

    /// Notes the end of the partition: when all messages before it are done, the position moves there. Returns whether
    /// it does now.
    pub(super) fn note_end(&self, end: Position) -> bool {
        self.state().watermark.note_end(end)
    }

    fn wake_admission(&self, state: &mut State, notifications: &mut Notifications) {
        // Not for each message that ends, but when slots may soon have nothing to do.
        let most = self.settings.jobs_max.max(state.short_jobs.messages_max());
        if state.wants_capacity && state.ready_messages <= most && state.capacity(&self.settings) > 0 {
            state.wants_capacity = false;
            notifications.has_capacity = true;
        }
    }

    fn batch_of(&self, messages: impl IntoIterator<Item = Loose>) -> Batch {
        Batch::of_loose(self.at.clone(), messages, Arc::clone(&self.client))
    }

    /// Frees messages that no job will process.
    fn free(&self, mut state: State) {
        drop(self.batch_of(state.take_waiting()));
    }
}

impl std::fmt::Debug for Lanes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Lanes({}, {:?})", self.at, self.settings)
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        let state = std::mem::take(&mut *self.state());
        self.free(state);
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    fn lease(ends: &[usize]) -> LaneLease {
        let lanes = ends.iter().enumerate().map(|(number, end)| Leased { number: number as u64, end: *end }).collect();
        LaneLease { lanes, epoch: 0, slot: Some(0), ran: None }
    }

    #[test]
    fn a_lane_ends_where_the_next_begins() {
        let lease = lease(&[2, 3, 6]);
        assert_eq!([0, 1, 2, 3, 5].map(|index| lease.end_of_lane(index)), [2, 2, 3, 6, 6]);
        assert!(lease.has_several());
    }

    #[test]
    fn lanes_that_are_split_off_have_no_slot() {
        let mut lease = lease(&[2, 3, 6]);
        let rest = lease.split_off(2);
        assert_eq!(lease.lanes.iter().map(|lane| lane.end).collect::<Vec<_>>(), [2]);
        assert_eq!(rest.lanes.iter().map(|lane| lane.end).collect::<Vec<_>>(), [3, 6]);
        assert_eq!(rest.slot, None);
    }

    #[test]
    fn mixed_lanes_of_a_batch_are_not_taken_apart() {
        assert!(!lease(&[6, 6, 6]).has_several());
        assert!(!lease(&[6]).has_several());
    }
}
