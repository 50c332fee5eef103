//! The work that the scheduler gives to workers: a job, a hook, or messages whose lanes have to be assigned.

use std::sync::Arc;
use std::time::Instant;

use super::job::UnitLease;
use super::partition_queue::{Found, UnitOwner};
use super::scheduler::{Next, Outcome, UnitId};
use super::{Job, LaneAssignment, PartitionQueue, PartitionScheduler};
use crate::clock::{self, Deadline};
use crate::wake::Notifier;

/// A change of a partition between its jobs, for user code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// It was assigned; comes before its first job.
    Assigned,
    /// An interval has passed; comes again and again between jobs.
    Tick,
    /// It is about to be given back; comes after its last job.
    Revoked,
    /// The group has given it to another member already; comes after its last job.
    Lost,
    /// The process stops; comes after its last job.
    Shutdown,
}

/// Work for a worker.
pub enum Work {
    /// Run a hook, then give the unit back with [`HookJob::finish`].
    Hook(HookJob),
    /// Process a batch.
    Job(Job),
    /// Name the lanes of messages.
    AssignLanes(LaneAssignment),
    /// A partition has no more messages for now (only where the reader asked for it).
    EndOfPartition(Arc<PartitionQueue>),
    /// The worker has to end.
    Closed,
    /// There was no work before the deadline.
    TimedOut,
}

impl PartitionScheduler {
    /// Makes the scheduler of an app's jobs, which a test that has the clock waits for.
    pub fn of_app() -> Arc<Self> {
        let scheduler = Arc::new(Self::default());
        clock::register(&scheduler);
        scheduler
    }

    /// Returns the next work. Blocks the calling thread until there is some, the deadline passes or the scheduler
    /// closes.
    pub fn next_work(&self, deadline: &Deadline) -> Work {
        clock::mark_job_thread();
        self.next_work_of_reader(deadline)
    }

    /// Returns the next work, as `next_work`, on a thread that runs no jobs of an app's.
    pub(super) fn next_work_of_reader(&self, deadline: &Deadline) -> Work {
        loop {
            if let Some(work) = self.begin(self.next(deadline)) {
                return work;
            }
        }
    }

    /// Returns the next work, if there is some. Does not block.
    pub fn try_next_work(&self) -> Option<Work> {
        loop {
            if let Some(work) = self.begin(self.try_next()?) {
                return Some(work);
            }
        }
    }

    /// Returns the next work, as `try_next_work`; when there is none, the notifier is notified as soon as there is. The
    /// moment, if any, is when the caller has to ask again by itself. Does not block.
    pub fn next_work_or_notify(&self, notifier: &Arc<dyn Notifier>) -> (Option<Work>, Option<Instant>) {
        loop {
            match self.next_or_notify(notifier) {
                (None, moment) => return (None, moment),
                (Some(next), _) => {
                    if let Some(work) = self.begin(next) {
                        return (Some(work), None);
                    }
                }
            }
        }
    }

    /// Turns a unit into work; `None` when there was none after all.
    fn begin(&self, next: Next<UnitOwner, Hook>) -> Option<Work> {
        let mut next = Some(next);
        loop {
            match next? {
                Next::Closed => return Some(Work::Closed),
                Next::TimedOut => return Some(Work::TimedOut),
                Next::Hook(id, owner, hook) => {
                    return Some(Work::Hook(HookJob { unit: UnitLease { partition: owner.partition, id }, hook }));
                }
                Next::Messages(id, owner, since) => match self.find_work(id, owner, since) {
                    Ok(work) => return work,
                    Err(exchanged) => next = exchanged,
                },
            }
        }
    }

    /// Returns the work of a unit that was announced, if there is some; or else the unit for which this one was
    /// exchanged.
    fn find_work(
        &self,
        id: UnitId,
        owner: UnitOwner,
        since: Instant,
    ) -> Result<Option<Work>, Option<Next<UnitOwner, Hook>>> {
        let found = owner.partition.find(owner.slot);
        let paced = owner.partition.paced_messages_max();
        let unit = UnitLease { partition: owner.partition, id };
        let outcome = match found {
            Found::Messages { parked, end, is_exhausted } => {
                let mut job = Job::new(unit, parked, end, outcome_of(is_exhausted), clock::since(since));
                job.truncate(paced);
                return Ok(Some(Work::Job(job)));
            }
            Found::Lanes(work) => {
                let mut job = Job::of_lanes(unit, work, clock::since(since));
                job.truncate(paced);
                return Ok(Some(Work::Job(job)));
            }
            Found::Unassigned { batch, is_exhausted } => {
                let assignment = LaneAssignment::new(unit, batch, outcome_of(is_exhausted));
                return Ok(Some(Work::AssignLanes(assignment)));
            }
            Found::End => {
                let partition = Arc::clone(&unit.partition);
                unit.finish(Outcome::MaybeMore);
                return Ok(Some(Work::EndOfPartition(partition)));
            }
            Found::Admitted { mut slots, is_exhausted } => {
                let mine = slots.pop();
                slots.into_iter().for_each(|slot| self.announce(slot));
                if let Some(mine) = mine {
                    return Err(self.exchange(id, outcome_of(is_exhausted), mine));
                }
                outcome_of(is_exhausted)
            }
            Found::Nothing { is_exhausted } => outcome_of(is_exhausted),
            Found::NotBefore(moment) => Outcome::NotBefore(moment),
            Found::Until(moment) => Outcome::Until(moment),
        };
        unit.finish(outcome);
        Ok(None)
    }
}

const fn outcome_of(is_exhausted: bool) -> Outcome {
    if is_exhausted { Outcome::Exhausted } else { Outcome::MaybeMore }
}

/// A hook to run, and the unit that waits for it.
pub struct HookJob {
    unit: UnitLease,
    hook: Hook,
}

impl HookJob {
    /// Returns the hook.
    pub const fn hook(&self) -> Hook {
        self.hook
    }

    /// Returns the partition.
    pub const fn partition(&self) -> &Arc<PartitionQueue> {
        &self.unit.partition
    }

    /// Gives the unit back.
    pub fn finish(self) {
        // Messages that came while the hook ran were announced.
        self.unit.finish(Outcome::Exhausted);
    }
}
