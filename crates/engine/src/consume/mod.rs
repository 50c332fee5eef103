//! The way of a message from the broker to user code and of its offset back: one file per station.
//!
//! `group_member` (its thread talks to the group) → `partition_queue` (where librdkafka puts fetched messages) →
//! `flow` (how fast) → `scheduler` (which partition is next, and who works) → `job` (a lent batch) ⇒ user code ⇒ `offsets` (what is stored)
//! → `committer` (what the broker holds). `reader` reads without a group.

mod assignment;
mod committer;
mod flow;
mod group_member;
mod job;
mod offsets;
mod partition_queue;
mod reader;
mod scheduler;
mod start;

pub use flow::{Flow, PullLimits, RateLimit};
pub use group_member::{GroupMember, GroupSettings, PartitionState, Route};
pub use job::{Hook, HookJob, Job, Work};
pub use partition_queue::{LaneSettings, PartitionQueue};
pub use reader::{Read, Reader};
pub use scheduler::{ClassId, LaneId, LaneOptions, Next, Outcome, Scheduler, SchedulerCounters};
pub use start::StartAt;

/// The scheduler of partitions.
pub type PartitionScheduler = Scheduler<std::sync::Arc<PartitionQueue>, Hook>;
