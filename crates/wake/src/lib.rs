//! The primitives that threads and event loops wait with. Knows no Kafka and no Python.
//!
//! `models` checks them: loom tries every interleaving (`make models`).

mod awaited;
mod budget;
pub mod clock;
#[cfg(all(target_os = "linux", not(feature = "simulated")))]
mod clock_steps;
mod completion;
pub mod counters;
mod error;
pub mod fork_guard;
mod leader;
mod loop_service;
mod mailbox;
#[cfg(feature = "model")]
pub mod model;
mod own_thread;
mod parker;
mod sequencer;
mod signal;
#[cfg(feature = "simulated")]
pub mod simulation;
pub mod sync;
mod waker;

#[cfg(all(test, feature = "model"))]
mod models;

pub use awaited::Awaited;
pub use budget::Budget;
#[cfg(all(target_os = "linux", not(feature = "simulated")))]
pub use clock_steps::{ClockSteps, OnStep};
pub use completion::{Completion, Latch};
pub use error::{Error, Result};
pub use leader::{Leadership, Place, ServingWait};
pub use loop_service::{LoopService, Served};
pub use mailbox::{EventFd, Mailbox, Notifier, Tokens};
pub use own_thread::OwnThread;
pub use parker::Parker;
pub use sequencer::{Count, Missing, Permit, Registration, Sequencer, Sink, Ticket};
pub use signal::{Recurrence, Signal, SignalWait};
#[cfg(feature = "simulated")]
pub use simulation::{ClockSteps, OnStep};
pub use waker::{Listener, Waker};
