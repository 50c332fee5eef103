//! A batch lent to a worker, and its way back: done, done in part, or to be tried again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::lanes::{Hold, Lanes, Retry, Taken, Wakes};
use super::partition_queue::{Found, LaneOwner, Parked};
use super::scheduler::{LaneId, Next, Outcome};
use super::{PartitionQueue, PartitionScheduler, Turn};
use crate::clock::Deadline;
use crate::kafka::{Batch, Position};
use crate::wake::Bell;
use crate::{Error, Result};

/// What happens to a partition between its jobs, for user code to hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// It was assigned; comes before its first job.
    Assigned,
    /// Time has passed; comes again and again between jobs.
    Tick,
    /// It is about to be given back; comes after its last job.
    Revoked,
    /// It was taken without asking; comes after its last job.
    Lost,
    /// The process stops; comes after its last job.
    Shutdown,
}

/// What a worker is to do.
pub enum Work {
    /// Run a hook, then give the lane back with [`HookJob::finish`].
    Hook(HookJob),
    /// Process a batch.
    Job(Job),
    /// Say which messages share a lane.
    Sort(Sorting),
    /// A partition has no more messages for now (only where the reader asked to be told).
    EndOfPartition(Arc<PartitionQueue>),
    /// Nothing more will come.
    Closed,
    /// Nothing came within the deadline.
    TimedOut,
}

impl PartitionScheduler {
    /// The next thing to do. Blocks the calling thread until there is one, the deadline passes or the scheduler closes.
    pub fn next_work(&self, deadline: &Deadline) -> Work {
        loop {
            if let Some(work) = self.begin(self.next(deadline)) {
                return work;
            }
        }
    }

    /// The next thing to do, if there is one. Does not block.
    pub fn try_next_work(&self) -> Option<Work> {
        loop {
            if let Some(work) = self.begin(self.try_next()?) {
                return Some(work);
            }
        }
    }

    /// As `try_next_work`; when there is nothing, the bell rings as soon as there is. The moment, if any, is when to come
    /// again by oneself. Does not block.
    pub fn next_work_or_ring(&self, bell: &Arc<dyn Bell>) -> (Option<Work>, Option<Instant>) {
        loop {
            match self.next_or_ring(bell) {
                (None, moment) => return (None, moment),
                (Some(next), _) => {
                    if let Some(work) = self.begin(next) {
                        return (Some(work), None);
                    }
                }
            }
        }
    }
}

impl PartitionScheduler {
    /// Turns a lane into work; `None` when it had been announced and was empty after all.
    fn begin(&self, next: Next<LaneOwner, Hook>) -> Option<Work> {
        let mut next = Some(next);
        loop {
            let (id, owner, since) = match next? {
                Next::Closed => return Some(Work::Closed),
                Next::TimedOut => return Some(Work::TimedOut),
                Next::Hook(id, owner, hook) => {
                    return Some(Work::Hook(HookJob { lane: Lane { partition: owner.partition, id }, hook }));
                }
                Next::Messages(id, owner, since) => (id, owner, since),
            };
            let found = owner.partition.find(owner.slot);
            let paced = owner.partition.paced_messages_max();
            let lane = Lane { partition: owner.partition, id };
            match found {
                Found::Messages { parked: Parked { batch, first, attempts }, end, is_exhausted } => {
                    let mut job = Job::new(lane, batch, first, attempts, since.elapsed());
                    (job.end, job.after) = (end, after(is_exhausted));
                    job.cut(paced);
                    return Some(Work::Job(job));
                }
                Found::Job(Taken { batch, first, end, attempts, hold }) => {
                    let mut job = Job::new(lane, batch, first, attempts, since.elapsed());
                    (job.end, job.own_end) = (end, end);
                    job.hold = Some(hold);
                    job.cut(paced);
                    return Some(Work::Job(job));
                }
                Found::ToSort { batch, is_exhausted } => {
                    return Some(Work::Sort(Sorting { lane: Some(lane), batch, after: after(is_exhausted) }));
                }
                Found::TakenIn { mut slots, is_exhausted } => {
                    let mine = slots.pop();
                    slots.into_iter().for_each(|slot| self.announce(slot));
                    let Some(mine) = mine else {
                        lane.finish(after(is_exhausted));
                        return None;
                    };
                    next = self.exchange(id, after(is_exhausted), mine);
                }
                Found::Nothing { is_exhausted } => {
                    lane.finish(after(is_exhausted));
                    return None;
                }
                Found::NotBefore(moment) => {
                    lane.finish(Outcome::NotBefore(moment));
                    return None;
                }
                Found::Until(moment) => {
                    lane.finish(Outcome::Until(moment));
                    return None;
                }
                Found::End => {
                    let partition = Arc::clone(&lane.partition);
                    lane.finish(Outcome::MaybeMore);
                    return Some(Work::EndOfPartition(partition));
                }
            }
        }
    }
}

const fn after(is_exhausted: bool) -> Outcome {
    if is_exhausted { Outcome::Exhausted } else { Outcome::MaybeMore }
}

/// A lane that a worker holds.
struct Lane {
    partition: Arc<PartitionQueue>,
    id: LaneId,
}

impl Lane {
    /// Does nothing in a forked child: the lane is the parent's, and its locks may be held by threads that are not here.
    fn finish(self, outcome: Outcome) {
        if self.partition.check_process().is_err() {
            return;
        }
        self.partition.scheduler().finish(self.id, outcome);
    }
}

/// A hook to run, and the lane that waits for it.
pub struct HookJob {
    lane: Lane,
    hook: Hook,
}

impl HookJob {
    /// Which hook.
    pub const fn hook(&self) -> Hook {
        self.hook
    }

    /// For which partition.
    pub const fn partition(&self) -> &Arc<PartitionQueue> {
        &self.lane.partition
    }

    /// Gives the lane back.
    pub fn finish(self) {
        // Messages that came while the hook ran have announced themselves.
        self.lane.finish(Outcome::Exhausted);
    }
}

/// Messages whose lanes the route is to say. Dropped without `finish`, they go by their keys.
pub struct Sorting {
    lane: Option<Lane>,
    batch: Arc<Batch>,
    after: Outcome,
}

impl Sorting {
    /// The messages. Whoever keeps them longer than until `finish` must have copied them.
    pub const fn batch(&self) -> &Arc<Batch> {
        &self.batch
    }

    /// Which partition; `None` when it has been finished.
    pub fn partition(&self) -> Option<&Arc<PartitionQueue>> {
        self.lane.as_ref().map(|lane| &lane.partition)
    }

    /// Gives each message to the lane of its number, and the partition back.
    ///
    /// # Errors
    /// [`Error::Invalid`]: somebody else still has the batch.
    pub fn finish(mut self, numbers: Option<&[u64]>) -> Result<()> {
        self.give_back(numbers)
    }

    fn give_back(&mut self, numbers: Option<&[u64]>) -> Result<()> {
        let Some(lane) = self.lane.take() else { return Ok(()) };
        if lane.partition.check_process().is_err() {
            return Ok(());
        }
        let empty = Arc::new(lane.partition.empty_batch());
        let whole = Arc::into_inner(std::mem::replace(&mut self.batch, empty));
        let slots = whole.map(|batch| lane.partition.admit(batch, numbers));
        let scheduler = Arc::clone(lane.partition.scheduler());
        lane.finish(self.after);
        let invalid = || Error::Invalid { reason: "messages that are being sorted are still in use".into() };
        slots.ok_or_else(invalid)?.into_iter().for_each(|slot| scheduler.announce(slot));
        Ok(())
    }
}

impl Drop for Sorting {
    fn drop(&mut self) {
        drop(self.give_back(None));
    }
}

/// A batch lent to a worker.
///
/// It ends with `complete`, or with `retry`. A job that is dropped without either (its worker died) is tried again at once.
pub struct Job {
    /// `None` when the job has ended.
    lane: Option<Lane>,
    batch: Arc<Batch>,
    /// The first message that is not done.
    done: usize,
    /// One past the last message that belongs to the job; what is behind it belongs to a later one.
    end: usize,
    /// One past the last message of the batch that is this job's or is left by it to a later one.
    own_end: usize,
    /// Where this try began.
    began: usize,
    /// How many times the message at `began` was tried before.
    attempts: u32,
    after: Outcome,
    /// How long the lane stood in line.
    waited: Duration,
    since: Instant,
    /// Of a route with several jobs of a partition at once: the lanes that the job holds.
    hold: Option<Hold>,
    /// Whether the partition waits for the job though it has left its slot.
    is_held: bool,
}

impl Job {
    fn new(lane: Lane, batch: Arc<Batch>, first: usize, attempts: u32, waited: Duration) -> Self {
        let end = batch.len();
        Self {
            lane: Some(lane),
            batch,
            done: first,
            end,
            own_end: end,
            began: first,
            attempts,
            after: Outcome::Exhausted,
            waited,
            since: Instant::now(),
            hold: None,
            is_held: false,
        }
    }

    /// The messages. Those before `first` were done in an earlier try; those from `end` on belong to a later job.
    pub const fn batch(&self) -> &Arc<Batch> {
        &self.batch
    }

    /// One past the last message of the job.
    pub const fn end(&self) -> usize {
        self.end
    }

    /// How long the partition stood in line before a worker came.
    pub const fn waited(&self) -> Duration {
        self.waited
    }

    /// Whether the partition was taken away meanwhile: what the job reports changes nothing.
    pub fn is_fenced(&self) -> bool {
        self.lane.as_ref().is_some_and(|lane| lane.partition.check_current().is_err())
    }

    /// The first message that is not done.
    pub const fn first(&self) -> usize {
        self.done
    }

    /// Leaves all but the first so many messages that are not done to a later job; at least one stays.
    pub fn cut(&mut self, messages: usize) {
        self.end = self.end.min(self.done.saturating_add(messages.max(1)));
    }

    /// Leaves the messages from this offset on that are not done to a later job.
    pub fn cut_before(&mut self, offset: i64) {
        let index = (self.done..self.end).find(|index| self.batch.message(*index).offset() >= offset);
        self.end = index.unwrap_or(self.end);
    }

    /// The turn of a job that gives its messages to user code one by one; `None` when it has ended.
    pub fn turn(&self) -> Option<Turn> {
        self.lane.as_ref().map(|lane| lane.partition.turn())
    }

    /// Which try of the first message that is not done this is, from 1.
    pub const fn attempt(&self) -> u32 {
        if self.done == self.began { self.attempts + 1 } else { 1 }
    }

    /// Which partition; `None` when the job has ended.
    pub fn partition(&self) -> Option<&Arc<PartitionQueue>> {
        self.lane.as_ref().map(|lane| &lane.partition)
    }

    /// Says that the first `count` messages of the batch are done, and stores the offset after them.
    ///
    /// # Errors
    /// [`crate::Error::Fenced`] when the partition was taken away meanwhile; [`crate::Error::Forked`] in a forked child.
    pub fn done(&mut self, count: usize) -> Result<()> {
        let Some(lane) = &self.lane else {
            return Ok(());
        };
        lane.partition.check_process()?;
        let count = count.min(self.end);
        if count <= self.done {
            return Ok(());
        }
        let before = std::mem::replace(&mut self.done, count);
        if let (Some(hold), Some(lanes)) = (&self.hold, lane.partition.lanes()) {
            lane.partition.check_current()?;
            let offsets = (before..count).map(|index| self.batch.message(index).offset());
            lane.partition.tell(&lanes.done(hold, offsets));
            return Ok(());
        }
        let last = self.batch.message(count - 1);
        lane.partition.store(Position { offset: last.offset() + 1, leader_epoch: last.leader_epoch() })
    }

    /// Says that all is done, and gives the lane back.
    ///
    /// # Errors
    /// [`crate::Error::Fenced`] when the partition was taken away meanwhile; the job has ended all the same.
    pub fn complete(&mut self) -> Result<()> {
        let stored = self.done(self.end);
        self.release();
        stored
    }

    /// Gives the lane back without saying that anything is done: user code stores offsets itself.
    pub fn release(&mut self) {
        let Some(lane) = self.lane.take() else { return };
        lane.partition.note_pace(self.end - self.began, self.since.elapsed());
        if self.hold.is_some() {
            if self.end < self.own_end {
                self.park(lane, self.end, 0, Instant::now());
            } else {
                self.leave(lane, Lanes::give_back);
            }
            return;
        }
        if self.end < self.batch.len() && lane.partition.check_process().is_ok() {
            lane.partition.park(Parked { batch: Arc::clone(&self.batch), first: self.end, attempts: 0 });
            lane.finish(Outcome::MaybeMore);
        } else {
            lane.finish(self.after);
        }
    }

    /// Gives the lane back; what is not done is tried by a later job, as if for the first time.
    pub fn pass_on(&mut self) {
        self.end = self.done;
        self.release();
    }

    /// Keeps what is not done in its place and gives the lane back: nobody gets it before `delay` is over.
    pub fn retry(&mut self, delay: Duration) {
        let Some(lane) = self.lane.take() else { return };
        if lane.partition.check_process().is_err() {
            return;
        }
        let attempts = if self.done == self.began { self.attempts + 1 } else { 1 };
        if self.hold.is_some() {
            if self.done == self.own_end {
                self.leave(lane, Lanes::give_back);
                return;
            }
            let now = Instant::now();
            self.park(lane, self.done, attempts, now.checked_add(delay).unwrap_or(now));
            return;
        }
        lane.partition.park(Parked { batch: Arc::clone(&self.batch), first: self.done, attempts });
        let now = Instant::now();
        lane.finish(Outcome::NotBefore(now.checked_add(delay).unwrap_or(now)));
    }
}

impl Job {
    /// Keeps messages of lanes for a later job.
    fn park(&mut self, lane: Lane, first: usize, attempts: u32, moment: Instant) {
        let (batch, partition) = (Arc::clone(&self.batch), Arc::clone(&lane.partition));
        let retry = Retry { batch, first, end: self.own_end, attempts };
        self.leave(lane, |lanes, hold| lanes.park(hold, retry, moment));
        if moment > Instant::now() {
            partition.scheduler().look_at(partition.lane(), moment);
        }
    }

    /// Ends, or goes on outside of its slot, as `leave` says; its slot goes on or rests.
    fn leave(&mut self, lane: Lane, leave: impl FnOnce(&Lanes, &mut Hold) -> (bool, Wakes)) {
        let (Some(hold), Some(lanes)) = (self.hold.as_mut(), lane.partition.lanes()) else { return };
        if lane.partition.check_process().is_err() {
            return;
        }
        let had_slot = hold.slot.is_some();
        let (has_more, wakes) = leave(lanes, hold);
        let partition = Arc::clone(&lane.partition);
        if had_slot {
            lane.finish(after(!has_more));
        }
        partition.tell(&wakes);
        if std::mem::take(&mut self.is_held) {
            partition.scheduler().let_go(partition.lane());
        }
    }

    /// Gives its slot to others and goes on by itself, holding its lanes: user code is through with it, and it waits for
    /// something else. Where it `is_held`, the partition is not given back before it ends. Only a job of lanes can.
    pub fn step_aside(&mut self, is_held: bool) {
        let Some(lane) = &self.lane else { return };
        if self.hold.is_none() {
            return;
        }
        let lane = Lane { partition: Arc::clone(&lane.partition), id: lane.id };
        if is_held {
            self.hold_partition();
        }
        let was_held = std::mem::take(&mut self.is_held);
        self.leave(lane, Lanes::step_aside);
        self.is_held = was_held;
    }

    /// Takes the messages before `count` that are not done into a job of their own, outside of any slot and without lanes: user
    /// code is through with them, and they wait for something else. Only a job of lanes can be taken apart.
    pub fn part(&mut self, count: usize) -> Option<Self> {
        let (hold, lane) = (self.hold.as_ref()?, self.lane.as_ref()?);
        let lane = Lane { partition: Arc::clone(&lane.partition), id: lane.id };
        let mut part = Self::new(lane, Arc::clone(&self.batch), self.done, 0, self.waited);
        part.hold = Some(hold.without_lanes());
        part.end = count.clamp(self.done, self.end);
        part.own_end = part.end;
        self.done = part.end;
        Some(part)
    }

    /// From here on the partition is not given back before the job has ended.
    pub fn hold_partition(&mut self) {
        if let (Some(lane), false) = (&self.lane, self.is_held) {
            lane.partition.scheduler().hold(lane.partition.lane());
            self.is_held = true;
        }
    }

    /// Ends a `hold_partition`: should the partition be given back, what the job does is nobody's concern.
    pub fn let_go_of_partition(&mut self) {
        if let (Some(lane), true) = (&self.lane, std::mem::take(&mut self.is_held)) {
            lane.partition.scheduler().let_go(lane.partition.lane());
        }
    }

    /// Whether it is one of several jobs of its partition.
    pub const fn is_of_lanes(&self) -> bool {
        self.hold.is_some()
    }

    /// Which reading of the partition it belongs to: a seek begins another one.
    pub fn epoch(&self) -> u64 {
        self.hold.as_ref().map_or(0, |hold| hold.epoch)
    }

    /// The places of its messages in the order in which the partition's were taken in, from 0; those from `first` on. `None`
    /// for messages of before a seek. Empty where one job at a time runs.
    pub fn ordinals(&self) -> Vec<Option<u64>> {
        let (Some(hold), Some(lane)) = (&self.hold, &self.lane) else { return Vec::new() };
        let offsets = (self.done..self.end).map(|index| self.batch.message(index).offset());
        lane.partition.lanes().map_or_else(Vec::new, |lanes| lanes.ordinals(hold, offsets))
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.retry(Duration::ZERO);
    }
}
