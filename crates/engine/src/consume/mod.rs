//! The way of a message from the broker to user code and of its offset back: one file per station.
//!
//! `group_member` (its thread talks to the group) → `partition_queue` (where librdkafka puts fetched messages) → `flow`
//! (how fast) → `lanes` (where several messages of a partition are worked on at once) → `scheduler` (which partition is
//! next, and who works) → `job` (a lent batch) ⇒ user code ⇒ `watermark` (up to where all is done) → `offsets` (what is
//! stored) → `committer` (what the broker holds), or `batcher` (offsets and what came of the messages, in one).
//! `reader` reads without a group.

mod assignment;
mod committer;
mod fetch_history;
mod finished;
mod flow;
mod group_member;
mod job;
mod job_end;
mod lane_assignment;
mod lanes;
#[cfg(all(test, feature = "model"))]
mod models;
mod offsets;
mod open_partitions;
mod pace;
mod partition_queue;
mod progress;
mod reader;
mod restore;
mod route;
mod scheduler;
mod shared_job;
mod start;
#[cfg(all(test, not(feature = "model")))]
mod testing;
mod turn;
mod watermark;
mod work;

#[cfg(feature = "simulated")]
pub use finished::finished_beyond;
pub use flow::{Flow, PullLimits, RateLimit};
pub use group_member::{GroupMember, GroupSettings, PartitionState, Strangers};
pub use job::Job;
pub use job_end::JobEnd;
pub use lane_assignment::LaneAssignment;
pub use lanes::{Concurrency, LaneBy, Share, SkipPolicy};
pub(crate) use offsets::ToCommit;
pub use open_partitions::Stuck;
pub use pace::Pace;
pub use partition_queue::{PartitionQueue, PartitionSettings, UnitOwner};
pub use progress::{Step, Turns};
pub use reader::{Read, Reader};
pub use route::Route;
pub use scheduler::{ClassId, Next, Outcome, Rest, Scheduler, SchedulerCounters, SchedulerStats, UnitId, UnitOptions};
pub use shared_job::SharedJob;
pub use start::StartAt;
pub use turn::Turn;
pub use watermark::CommitGap;
pub use work::{Hook, HookJob, Work};

/// The scheduler of partitions.
pub type PartitionScheduler = Scheduler<UnitOwner, Hook>;
