//! The engine of awoke: knows Kafka and threads, knows nothing of Python.
//!
//! Read the folder names as the life of a message: `kafka` is the safe face of librdkafka, `consume` holds one file per
//! station from the fetcher to the committed offset, `produce` one file per station from a record to its delivery
//! report, `transact` puts both into transactions, `rpc` sends calls over them, and `wake` has what they all wait with.
//! ARCHITECTURE.md walks both ways step by step.

#![deny(unsafe_code)] // `lifeline` and `rpc::caller::random_ids` call the system; all of librdkafka is in `kafka`.

pub use awoke_kafka::{self as kafka, Error, Result, events};
use awoke_wake::sync;
pub use awoke_wake::{self as wake, clock, counters, fork_guard};

pub mod avro_walk;
#[cfg(feature = "client")]
pub mod consume;
#[cfg(feature = "librdkafka")]
#[allow(unsafe_code)] // Calls of Linux's that Rust's library does not have.
pub mod lifeline;
#[cfg(feature = "client")]
pub mod produce;
#[cfg(feature = "client")]
pub mod rpc;
#[cfg(feature = "client")]
pub mod state;
#[cfg(feature = "client")]
pub mod transact;

#[cfg(all(test, not(feature = "model")))]
mod fuzzing;

/// The part of `consume` that the models try. It needs no client, so the models build in seconds.
#[cfg(not(feature = "client"))]
#[allow(dead_code, unused_imports, clippy::pedantic)] // The whole build lints these files.
mod consume {
    #[cfg(all(test, feature = "model"))]
    mod models;
    mod scheduler;

    pub use scheduler::{Next, Outcome, Scheduler, UnitOptions};
}

/// The part of `rpc` that the models try.
#[cfg(not(feature = "client"))]
#[allow(dead_code, unused_imports, clippy::pedantic)] // The whole build lints these files.
mod rpc {
    mod caller {
        mod call;
        mod calls;
        #[cfg(all(test, feature = "model"))]
        mod models;
    }
    mod protocol;
    mod signature;
}
