//! Exactly once from topic to topic: the records that jobs produce, and their offsets, in shared transactions.
//!
//! A job's records and its offset are one `entry`; the `batcher` collects the entries of all partitions and puts as
//! many as are there into one transaction; `attempt` is one try of such a transaction. `queue` has the entries that
//! wait.

mod attempt;
mod batcher;
mod entry;
mod queue;

pub use batcher::{TransactionBatcher, TransactionLimits};
pub use entry::{Committed, TransactionEntry};
