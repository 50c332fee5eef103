//! The engine of awoke: knows Kafka and threads, knows nothing of Python.
//!
//! Read the folder names as the life of a message: `kafka` is the safe face of librdkafka, `consume` holds one file per
//! station from the fetcher to the committed offset, `produce` one file per station from a record to its delivery
//! report, `rpc` asks questions over both, and `wake` holds what they all wait with. ARCHITECTURE.md walks both ways step by step.

pub mod clock;
#[cfg(target_os = "linux")]
mod clock_steps;
pub mod consume;
pub mod counters;
mod error;
pub mod events;
pub mod fork_guard;
pub mod kafka;
pub mod lifeline;
pub mod produce;
pub mod rpc;
mod sync;
pub mod wake;

#[cfg(all(test, not(feature = "model")))]
mod fuzzing;
#[cfg(all(test, feature = "model"))]
mod models;

pub use error::{Error, Result};
