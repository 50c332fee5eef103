//! How one thread, or one event loop, waits for one thing. Knows no Kafka.

pub mod completion;
pub mod lead;
pub mod mailbox;
pub mod parker;
pub mod sequencer;
mod waits;

pub use completion::{Completion, Latch, Listener, Waker};
pub use lead::{Lead, Place};
pub use mailbox::{Bell, EventFd, Mailbox};
pub use parker::Parker;
pub use sequencer::{Missing, Permit, Sequencer, Sink, Ticket};
pub use waits::Registration;
