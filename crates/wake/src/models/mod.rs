//! Models of the primitives: loom tries every interleaving of the threads below.
//!
//! Run by `make models`. A lost wake-up shows as a deadlock, which loom reports.

mod leadership;
mod loop_service;
mod sequencer;
mod waiting;
