//! A Kafka client behind a safe interface.
//!
//! What every client would share stands here: error codes, errors, events, partitions. `librdkafka` is the client that
//! awoke uses: all of librdkafka, and every call of its foreign functions, is in there. Without the feature of that
//! name, the crate has the shared part only, and builds in a second.

use awoke_wake::{self as wake};
#[cfg(any(feature = "librdkafka", feature = "simulated"))]
use awoke_wake::{clock, fork_guard};

mod code;
mod error;
pub mod events;
mod fetched;
#[cfg(feature = "librdkafka")]
mod librdkafka;
#[cfg(feature = "simulated")]
pub mod simulated;
mod topic_partition;

pub use code::Code;
pub use error::{Error, Result};
pub use fetched::Fetched;
#[cfg(feature = "librdkafka")]
pub use librdkafka::*;
#[cfg(all(feature = "simulated", not(feature = "librdkafka")))]
pub use simulated::*;
pub use topic_partition::{Position, TopicPartition};
