//! The engine's `consume` for Python: batches, the work of workers, routes, group members, readers.

mod batch;
mod decoding;
mod group_member;
mod hook_job;
mod job;
mod lane_assignment;
mod made_batch;
mod message;
mod partition;
mod reader;
mod route;
mod scheduler;
mod turns;
mod value_buffer;

pub use batch::Batch;
pub use decoding::Decoders;
pub use group_member::{GroupMember, PendingStep, STEP_LIMIT};
pub use hook_job::HookJob;
pub use job::Job;
pub use lane_assignment::LaneAssignment;
pub use made_batch::make_batch;
pub use message::{BatchIterator, Message};
pub use partition::Partition;
pub use reader::Reader;
pub use route::Route;
pub use scheduler::Scheduler;
pub use value_buffer::ValueBuffer;
