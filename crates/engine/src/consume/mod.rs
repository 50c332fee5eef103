//! The way of a message from the broker to user code and of its offset back: one file per station.
//!
//! `group_member` (its thread talks to the group) → `partition_queue` (where librdkafka puts fetched messages) → `flow` (how
//! fast) → `lanes` (where several messages of a partition are worked on at once) → `scheduler` (which partition is next, and
//! who works) → `job` (a lent batch) ⇒ user code ⇒ `watermark` (up to where all is done) → `offsets` (what is stored) →
//! `committer` (what the broker holds), or `transactor` (offsets and what came of the messages, in one). `reader` reads without a group.

mod assignment;
mod classes;
mod committer;
mod finished;
mod flow;
mod given;
mod group_member;
mod job;
mod lanes;
#[cfg(all(test, feature = "model"))]
mod models;
mod offsets;
mod open_partitions;
mod pace;
mod partition_queue;
mod reader;
mod route;
mod scheduler;
mod start;
#[cfg(all(test, not(feature = "model")))]
mod testing;
mod transactor;
mod turn;
mod watermark;

pub use classes::ClassId;
pub use flow::{Flow, PullLimits, RateLimit};
pub use group_member::{GroupMember, GroupSettings, PartitionState};
pub use job::{Hook, HookJob, Job, Sorting, Work};
pub use lanes::{Concurrency, LaneBy, SkipPolicy};
pub use open_partitions::Stuck;
pub use pace::Pace;
pub use partition_queue::{LaneOwner, LaneSettings, PartitionQueue};
pub use reader::{Read, Reader};
pub use route::Route;
pub use scheduler::{LaneId, LaneOptions, Next, Outcome, Scheduler, SchedulerCounters};
pub use start::StartAt;
pub use transactor::{Committed, Contribution, TransactionLimits, Transactor};
pub use turn::Turn;
pub use watermark::Trail;

/// The scheduler of partitions.
pub type PartitionScheduler = Scheduler<LaneOwner, Hook>;
