//! A Kafka client behind a safe interface.
//!
//! There are two: `librdkafka` is the client that awoke uses, with every call of a foreign function; `simulated` stands
//! for it in simulations. Both offer what `seam` states, with the error codes, errors and events that stand here.
//! Without a client, the crate has the shared part only, and builds in a second.

use awoke_wake::{self as wake};
#[cfg(any(feature = "librdkafka", feature = "simulated"))]
use awoke_wake::{clock, fork_guard};

mod code;
mod error;
pub mod events;
#[cfg(feature = "librdkafka")]
mod librdkafka;
mod seam;
#[cfg(feature = "simulated")]
pub mod simulated;

pub use code::Code;
pub use error::{Error, Result};
#[cfg(feature = "librdkafka")]
pub use librdkafka::*;
pub use seam::*;
#[cfg(all(feature = "simulated", not(feature = "librdkafka")))]
pub use simulated::*;
