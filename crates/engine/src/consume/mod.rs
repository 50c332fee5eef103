//! The way of a message from the broker to user code and of its offset back: one file per station.
//!
//! `group_member` (its thread talks to the group) → `partition_queue` (where librdkafka puts fetched messages) →
//! `scheduler` (which partition is next, and who works) → `job` (a lent batch) ⇒ user code ⇒ `offsets` (what is stored)
//! → `committer` (what the broker holds). `reader` reads without a group.

mod assignment;
mod committer;
mod group_member;
mod job;
mod offsets;
mod partition_queue;
mod reader;
mod scheduler;

pub use group_member::{GroupMember, GroupSettings, Route};
pub use job::{Hook, HookJob, Job, Work};
pub use partition_queue::{PartitionQueue, PullLimits};
pub use reader::{Read, Reader, StartAt};
pub use scheduler::{Next, Outcome, Scheduler, SchedulerCounters};

/// The scheduler of partitions.
pub type PartitionScheduler = Scheduler<std::sync::Arc<PartitionQueue>, Hook>;
