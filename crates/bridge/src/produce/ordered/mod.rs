//! Results that leave in the order of their messages, as Python sees them.
//!
//! A plain value costs no Python object. The thread that sends keeps the GIL, unless the producer's queue is full. Two
//! threads meet in a job: its worker adds results and seals it; the runner of its queue sends those whose turn has come
//! later. What Python's `Outgoing` of a job has to know is told once for a run, not for a message.

mod owner;
mod queue;
mod results;

pub use queue::OrderedQueue;
pub use results::OrderedResults;
