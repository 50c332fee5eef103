//! A batch lent to a worker, and its way back: done, done in part, or to be tried again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::lanes::{LaneLease, LaneMessages, LaneWork, Lanes, Notifications};
use super::partition_queue::Parked;
use super::progress::Progress;
use super::scheduler::{Outcome, UnitId};
use super::{PartitionQueue, Turn};
use crate::Result;
use crate::clock;
use crate::kafka::{Batch, Position};

/// A unit that a worker runs.
pub(super) struct UnitLease {
    pub(super) partition: Arc<PartitionQueue>,
    pub(super) id: UnitId,
}

impl UnitLease {
    /// Gives the unit back. Does nothing in a forked child: the unit is the parent's, and its locks may be held by
    /// threads that the child does not have.
    pub(super) fn finish(self, outcome: Outcome) {
        if self.partition.check_process().is_ok() {
            self.partition.scheduler().finish(self.id, outcome);
        }
    }
}

/// A batch lent to a worker.
///
/// It ends with `complete`, or with `retry`. A job that is dropped without either (its worker died) is tried again at
/// once.
pub struct Job {
    /// `None` when the job has ended.
    unit: Option<UnitLease>,
    batch: Arc<Batch>,
    /// The index of the first message that is not done.
    done: usize,
    /// The end (exclusive) of the messages of this job; those after it belong to a later one.
    end: usize,
    /// The end (exclusive) of the messages that this job owns, including those that it leaves for a later job.
    own_end: usize,
    /// Where this attempt began.
    began: usize,
    /// The number of earlier tries of the message at `began`.
    attempts: u32,
    /// The outcome with which the unit is given back when all messages are done.
    outcome: Outcome,
    /// The time for which the unit was ready.
    waited: Duration,
    since: Instant,
    /// The lanes of a job of a route with several jobs of a partition at once.
    lease: Option<LaneLease>,
    /// True if the partition stays assigned until the job has ended, though the job may have left its slot.
    keeps_assigned: bool,
}

impl Job {
    /// Makes a job of the messages before `end`; the rest of the batch is left to a later job.
    pub(super) fn new(unit: UnitLease, parked: Parked, end: usize, outcome: Outcome, waited: Duration) -> Self {
        let Parked { batch, first, attempts } = parked;
        let own_end = batch.len();
        Self {
            unit: Some(unit),
            batch,
            done: first,
            end,
            own_end,
            began: first,
            attempts,
            outcome,
            waited,
            since: clock::real_now(),
            lease: None,
            keeps_assigned: false,
        }
    }

    /// Makes a job of lanes.
    pub(super) fn of_lanes(unit: UnitLease, work: LaneWork, waited: Duration) -> Self {
        let LaneWork { messages: LaneMessages { batch, first, end, attempts }, lease } = work;
        let mut job = Self::new(unit, Parked { batch, first, attempts }, end, Outcome::Exhausted, waited);
        (job.own_end, job.lease) = (end, Some(lease));
        job
    }

    /// Returns the batch. Its messages before `first` were done in an earlier attempt; those from `end` on belong to a
    /// later job.
    pub const fn batch(&self) -> &Arc<Batch> {
        &self.batch
    }

    /// Returns the index of the first message that is not done.
    pub const fn first(&self) -> usize {
        self.done
    }

    /// Returns one past the index of the last message of the job.
    pub const fn end(&self) -> usize {
        self.end
    }

    /// Returns how long the partition was ready before a worker came.
    pub const fn waited(&self) -> Duration {
        self.waited
    }

    /// Returns the number of the attempt at the first message that is not done, from 1.
    pub const fn attempt(&self) -> u32 {
        if self.done == self.began { self.attempts + 1 } else { 1 }
    }

    /// Returns the partition; `None` when the job has ended.
    pub fn partition(&self) -> Option<&Arc<PartitionQueue>> {
        self.unit.as_ref().map(|unit| &unit.partition)
    }

    /// Returns whether the partition was revoked meanwhile: the results of the job change nothing.
    pub fn is_fenced(&self) -> bool {
        self.partition().is_some_and(|partition| partition.check_current().is_err())
    }

    /// Returns whether it is one of several jobs of its partition.
    pub const fn is_of_lanes(&self) -> bool {
        self.lease.is_some()
    }

    /// Returns the number of the reading of the partition: a seek begins another one.
    pub fn epoch(&self) -> u64 {
        self.lease.as_ref().map_or(0, |lease| lease.epoch)
    }

    /// Returns the offset of the first message that is left to a later job; `None` when none is.
    pub fn rest_offset(&self) -> Option<i64> {
        (self.end < self.own_end).then(|| self.batch.message(self.end).offset())
    }

    /// Returns the offset of the first message that is not done, of the last one where all are.
    pub fn first_offset(&self) -> i64 {
        self.batch.message(self.done.min(self.own_end - 1)).offset()
    }

    /// Returns how many messages of the batch are at or before an offset; in a job of lanes, at or before the message
    /// with this offset, in the order in which user code gets them.
    pub fn count_until(&self, offset: i64) -> usize {
        match self.place_of(offset).filter(|_| self.lease.is_some()) {
            Some(index) => index + 1,
            None => self.batch.iter().take_while(|message| message.offset() <= offset).count(),
        }
    }

    /// Returns how many messages of the batch are before an offset; in a job of lanes, as for `count_until`.
    pub fn count_before(&self, offset: i64) -> usize {
        let place = self.place_of(offset).filter(|_| self.lease.is_some());
        place.unwrap_or_else(|| self.batch.iter().take_while(|message| message.offset() < offset).count())
    }

    /// Returns the index of the message with this offset, if the batch has it before the job's end.
    fn place_of(&self, offset: i64) -> Option<usize> {
        (0..self.own_end).find(|index| self.batch.message(*index).offset() == offset)
    }

    /// Returns the ordinals of the messages from `first` on: their places, from 0, in the order in which the
    /// partition's messages were admitted. `None` for messages of before a seek. Empty where one job at a time runs.
    pub fn ordinals(&self) -> Vec<Option<u64>> {
        let (Some(lease), Some(unit)) = (&self.lease, &self.unit) else { return Vec::new() };
        let offsets = (self.done..self.end).map(|index| self.batch.message(index).offset());
        unit.partition.lanes().map_or_else(Vec::new, |lanes| lanes.ordinals(lease, offsets))
    }

    /// Leaves all but this number of the messages that are not done to a later job; at least one stays.
    pub fn truncate(&mut self, messages: usize) {
        self.end = self.end.min(self.done.saturating_add(messages.max(1)));
    }

    /// Leaves the message with this offset and those behind it, as user code gets them, to a later job.
    pub fn truncate_before(&mut self, offset: i64) {
        self.end = self.place_of(offset).map_or(self.end, |index| index.min(self.end));
    }

    /// Begins the turn of a job that gives its messages to user code one by one; `None` when it has ended.
    pub fn turn(&mut self) -> Option<Turn> {
        self.since = clock::real_now(); // A task may have waited for its event loop until now.
        self.partition().map(PartitionQueue::turn)
    }

    /// Leaves time out of what the messages of the job took: the worker did something for other jobs.
    pub fn leave_out(&mut self, time: Duration) -> &mut Self {
        self.since = self.since.checked_add(time).map_or(self.since, |since| since.min(clock::real_now()));
        self
    }

    /// Records that the first `count` messages of the batch are done, and stores the offset after them.
    ///
    /// # Errors
    /// [`crate::Error::Fenced`]: the partition was revoked meanwhile; [`crate::Error::Forked`]: this is a forked child.
    pub fn done(&mut self, count: usize) -> Result<()> {
        let Some(unit) = &self.unit else { return Ok(()) };
        unit.partition.check_process()?;
        let count = count.min(self.end);
        if count <= self.done {
            return Ok(());
        }
        let before = std::mem::replace(&mut self.done, count);
        if let (Some(lease), Some(lanes)) = (&self.lease, unit.partition.lanes()) {
            unit.partition.check_current()?;
            let offsets = (before..count).map(|index| self.batch.message(index).offset());
            unit.partition.notify(&lanes.done(lease, offsets));
            return Ok(());
        }
        let last = self.batch.message(count - 1);
        unit.partition.store(Position { offset: last.offset() + 1, leader_epoch: last.leader_epoch() })
    }

    /// Records that all messages are done, and gives the unit back.
    ///
    /// # Errors
    /// [`crate::Error::Fenced`]: the partition was revoked meanwhile; the job has ended all the same.
    pub fn complete(&mut self) -> Result<()> {
        let stored = self.done(self.end);
        self.release();
        stored
    }

    /// Gives the unit back without storing an offset: user code stores offsets itself.
    pub fn release(&mut self) {
        let Some(unit) = self.unit.take() else { return };
        unit.partition.note_pace(self.end - self.began, clock::real_since(self.since));
        if self.lease.is_some() {
            if self.end < self.own_end {
                self.park_lanes(unit, self.end, 0, clock::now());
            } else {
                self.leave(unit, Lanes::release);
            }
        } else if self.end < self.batch.len() && unit.partition.check_process().is_ok() {
            unit.partition.park(Parked { batch: Arc::clone(&self.batch), first: self.end, attempts: 0 });
            unit.finish(Outcome::MaybeMore);
        } else {
            unit.finish(self.outcome);
        }
    }

    /// Gives the unit back; a later job tries the messages that are not done, with attempt 1.
    pub fn release_rest(&mut self) {
        self.end = self.done;
        self.release();
    }

    /// Keeps the messages that are not done and gives the unit back; no job gets them before `delay` is over.
    ///
    /// This attempt counts as one of the first message, unless it failed for a reason that is not the message's. Where
    /// all messages are done by now (a transaction was committed meanwhile), it only gives the unit back.
    pub fn retry(&mut self, delay: Duration, is_counted: bool) {
        if self.done >= self.end {
            return self.release();
        }
        let Some(unit) = self.unit.take() else { return };
        if unit.partition.check_process().is_err() {
            return;
        }
        let before = if self.done == self.began { self.attempts } else { 0 };
        let (attempts, now) = (before + u32::from(is_counted), clock::now());
        let moment = now.checked_add(delay).unwrap_or(now);
        if self.lease.is_none() {
            unit.partition.park(Parked { batch: Arc::clone(&self.batch), first: self.done, attempts });
            unit.finish(Outcome::NotBefore(moment));
        } else {
            self.end = self.end.min(self.done + 1); // User code was not called for those behind it.
            self.park_lanes(unit, self.done, attempts, moment);
        }
    }
}

/// Jobs of lanes.
impl Job {
    /// Returns whether it has several lanes, whose messages user code gets one by one.
    pub fn has_several_lanes(&self) -> bool {
        self.lease.as_ref().is_some_and(LaneLease::has_several)
    }

    /// Takes the lanes away to which the worker with this progress has not come; `None` if there are none.
    pub(super) fn take_rest(&mut self, progress: &Progress) -> Option<(LaneLease, LaneMessages)> {
        let lease = self.lease.as_mut().filter(|lease| lease.slot.is_some())?;
        let first = progress.limit(|place| lease.end_of_lane(place)).min(self.own_end);
        if first >= self.end {
            return None; // The worker is in its last lane, or leaves the others anyway.
        }
        let rest = lease.split_off(first);
        let end = std::mem::replace(&mut self.own_end, first);
        self.end = first;
        Some((rest, LaneMessages { batch: Arc::clone(&self.batch), first, end, attempts: 0 }))
    }

    /// Keeps messages of lanes for a later job.
    fn park_lanes(&mut self, unit: UnitLease, first: usize, attempts: u32, moment: Instant) {
        let partition = Arc::clone(&unit.partition);
        let messages = LaneMessages { batch: Arc::clone(&self.batch), first, end: self.own_end, attempts };
        // Before they are kept: a moment that comes meanwhile wakes no slot.
        let waits = moment > clock::now();
        self.leave(unit, |lanes, lease| lanes.park(lease, messages, moment));
        if waits {
            partition.scheduler().wake_at(partition.unit(), moment);
        }
    }

    /// Ends the job, or takes it out of its slot, by `end`; the slot goes on or rests.
    fn leave(&mut self, unit: UnitLease, end: impl FnOnce(&Lanes, &mut LaneLease) -> (bool, Notifications)) {
        let (Some(lease), Some(lanes)) = (self.lease.as_mut(), unit.partition.lanes()) else { return };
        if unit.partition.check_process().is_err() {
            return;
        }
        let had_slot = lease.slot.is_some();
        lease.ran = Some((self.end - self.began, clock::real_since(self.since)));
        let (has_more, notifications) = end(lanes, lease);
        let partition = Arc::clone(&unit.partition);
        if had_slot {
            unit.finish(if has_more { Outcome::MaybeMore } else { Outcome::Exhausted });
        }
        partition.notify(&notifications);
        if std::mem::take(&mut self.keeps_assigned) {
            partition.scheduler().end_pending(partition.unit());
        }
    }

    /// Returns the unit again, for another part of this job.
    fn unit_again(&self) -> Option<UnitLease> {
        let unit = self.unit.as_ref()?;
        Some(UnitLease { partition: Arc::clone(&unit.partition), id: unit.id })
    }

    /// Gives the job slot to other jobs; this one goes on without it and keeps its lanes, because it waits for
    /// something after user code. With `keeps_assigned` the partition stays assigned until the job has ended. Does
    /// nothing where one job at a time runs.
    pub fn leave_slot(&mut self, keeps_assigned: bool) {
        let Some(unit) = self.unit_again().filter(|_| self.lease.is_some()) else { return };
        if keeps_assigned {
            self.keep_assigned();
        }
        let kept = std::mem::take(&mut self.keeps_assigned);
        self.leave(unit, Lanes::leave_slot);
        self.keeps_assigned = kept;
    }

    /// Splits the messages before index `count` that are not done off into a job of their own, without job slot and
    /// lanes, because they wait for something after user code. `None` where one job at a time runs.
    pub fn split_off(&mut self, count: usize) -> Option<Self> {
        let (lease, unit) = (self.lease.as_ref()?.without_lanes(), self.unit_again()?);
        let end = count.clamp(self.done, self.end);
        let batch = Arc::clone(&self.batch);
        let messages = LaneMessages { batch, first: self.done, end, attempts: 0 };
        self.done = end;
        Some(Self::of_lanes(unit, LaneWork { messages, lease }, self.waited))
    }

    /// Splits the lanes behind the one of the message at this index off into a job of their own, which has no job slot:
    /// they end for themselves. `None` if there are none.
    pub fn split_lanes_behind(&mut self, index: usize) -> Option<Self> {
        let unit = self.unit_again()?;
        let lease = self.lease.as_mut().filter(|lease| lease.slot.is_none())?;
        let first = lease.end_of_lane(index).min(self.own_end);
        if first >= self.end {
            return None;
        }
        let lease = lease.split_off(first);
        let (end, own_end) = (self.end, self.own_end);
        (self.end, self.own_end) = (first, first);
        let messages = LaneMessages { batch: Arc::clone(&self.batch), first, end: own_end, attempts: 0 };
        let mut rest = Self::of_lanes(unit, LaneWork { messages, lease }, self.waited);
        rest.end = end;
        Some(rest)
    }

    /// Keeps the partition assigned until the job has ended.
    pub fn keep_assigned(&mut self) {
        if let (Some(unit), false) = (&self.unit, self.keeps_assigned) {
            unit.partition.scheduler().add_pending(unit.partition.unit());
            self.keeps_assigned = true;
        }
    }

    /// Ends a `keep_assigned`: if the partition is revoked, the results of the job change nothing.
    pub fn allow_revoke(&mut self) {
        if let (Some(unit), true) = (&self.unit, std::mem::take(&mut self.keeps_assigned)) {
            unit.partition.scheduler().end_pending(unit.partition.unit());
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.retry(Duration::ZERO, true);
    }
}
