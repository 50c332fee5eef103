//! A batch lent to a worker, and its way back: done, done in part, or to be tried again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::partition_queue::{Found, Parked};
use super::scheduler::{LaneId, Next, Outcome};
use super::{PartitionQueue, PartitionScheduler};
use crate::Result;
use crate::clock::Deadline;
use crate::kafka::{Batch, Position};
use crate::wake::Bell;

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
            if let Some(work) = begin(self.next(deadline)) {
                return work;
            }
        }
    }

    /// The next thing to do, if there is one. Does not block.
    pub fn try_next_work(&self) -> Option<Work> {
        loop {
            if let Some(work) = begin(self.try_next()?) {
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
                    if let Some(work) = begin(next) {
                        return (Some(work), None);
                    }
                }
            }
        }
    }
}

/// Turns a lane into work; `None` when it had been announced and was empty after all.
fn begin(next: Next<Arc<PartitionQueue>, Hook>) -> Option<Work> {
    match next {
        Next::Closed => Some(Work::Closed),
        Next::TimedOut => Some(Work::TimedOut),
        Next::Hook(lane, partition, hook) => Some(Work::Hook(HookJob { lane: Lane { partition, id: lane }, hook })),
        Next::Messages(id, partition, since) => {
            let found = partition.find();
            let lane = Lane { partition, id };
            match found {
                Found::Messages { parked: Parked { batch, first, attempts }, end, is_exhausted } => {
                    let after = if is_exhausted { Outcome::Exhausted } else { Outcome::MaybeMore };
                    let waited = since.elapsed();
                    Some(Work::Job(Job {
                        lane: Some(lane),
                        batch,
                        done: first,
                        end,
                        began: first,
                        attempts,
                        after,
                        waited,
                    }))
                }
                Found::Nothing { is_exhausted } => {
                    lane.finish(if is_exhausted { Outcome::Exhausted } else { Outcome::MaybeMore });
                    None
                }
                Found::NotBefore(moment) => {
                    lane.finish(Outcome::NotBefore(moment));
                    None
                }
                Found::Until(moment) => {
                    lane.finish(Outcome::Until(moment));
                    None
                }
                Found::End => {
                    let partition = Arc::clone(&lane.partition);
                    lane.finish(Outcome::MaybeMore);
                    Some(Work::EndOfPartition(partition))
                }
            }
        }
    }
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
    /// Where this try began.
    began: usize,
    /// How many times the message at `began` was tried before.
    attempts: u32,
    after: Outcome,
    /// How long the lane stood in line.
    waited: Duration,
}

impl Job {
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
        self.end = self.end.min(self.done + messages.max(1));
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
        self.done = count;
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
        lane.partition.park(Parked { batch: Arc::clone(&self.batch), first: self.done, attempts });
        let now = Instant::now();
        lane.finish(Outcome::NotBefore(now.checked_add(delay).unwrap_or(now)));
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.retry(Duration::ZERO);
    }
}
