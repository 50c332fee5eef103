//! Kafka brokers inside the process, in memory: the protocol that clients speak, for tests and for a first try.
//!
//! `server` owns the only thread, the sockets and the clock. It hands each request to `cluster`, which knows no
//! socket: a request and the time go in, answers come out, some of them later. So the whole cluster can be driven
//! without a network. Each kind of request has its own file. Messages stay as the batches that producers wrote; no
//! batch is unpacked, unless a client asks for an offset by time.
//!
//! The brokers behave as Apache Kafka 4 does: groups of both protocols, transactions with markers, topics that are
//! made and deleted. They differ in what a test does not want: nothing is written to disk, replicas never lag, and
//! retention deletes nothing by itself.

// Each function takes its request, as some keep it.
#![allow(clippy::needless_pass_by_value)]

mod admin;
mod batch;
mod cluster;
mod connection;
mod coordinator;
mod faults;
mod fetch;
mod groups;
mod leader_epochs;
mod list_offsets;
mod log;
mod metadata;
mod produce;
mod producers;
mod records;
mod requests;
mod server;
#[cfg(test)]
mod testing;
mod topics;
mod transactions;

pub use faults::{Fault, Happened, Refusal};
pub use server::Server;
