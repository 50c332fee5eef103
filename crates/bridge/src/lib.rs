//! The bridge between awoke's engine and Python: converts, releases the GIL, calls, converts. It makes no decisions.
//!
//! One folder for each folder of the engine, one file for each of its nouns. Invariant: the GIL is never held during a
//! wait. It is not released where no wait is needed: a result that is ready is taken first.

#![allow(clippy::doc_markdown)] // Doc comments are what Python's `help` shows: they name its errors as it does.
#![allow(clippy::needless_pass_by_value)] // Arguments come converted from Python.
#![allow(clippy::too_many_arguments)] // Python's functions have many, most of them by name.

mod admin;
#[cfg(target_os = "linux")]
mod allocator;
mod avro_walk;
mod clock;
mod consume;
mod embedded;
mod errors;
mod events;
mod lifeline;
mod open;
mod pattern;
mod produce;
mod properties;
mod rpc;
mod sequencer;
mod settings;
mod state;
mod transact;
mod values;
mod versions;
mod waiting;

use pyo3::prelude::*;

/// Tells whether the value of this librdkafka property must never be shown.
#[pyfunction]
fn is_secret(property: &str) -> bool {
    awoke_engine::kafka::is_secret(property)
}

/// Bounds the memory of one fetched batch, in bytes, for all consumers of the process from now on. Does not block.
#[pyfunction]
fn set_fetched_batch_max(bytes: usize) {
    awoke_engine::kafka::set_batch_max(bytes);
}

#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use crate::{
        admin::{Admin, PendingCall},
        avro_walk::AvroWalk,
        clock::{Signal, SignalWait, TakenClock, clock_is_virtual, clock_ns, wall_ns},
        consume::{Batch, BatchIterator, Decoders, GroupMember, HookJob, Job, LaneAssignment, Message, Partition},
        consume::{PendingStep, Reader, Route, Scheduler, ValueBuffer, make_batch},
        embedded::EmbeddedBrokers,
        embedded::EmbeddedFault,
        errors::{denied_codes, permanent_codes},
        events::EventBox,
        is_secret,
        lifeline::Lifeline,
        pattern::LinearPattern,
        produce::{DeliveryHandle, OrderedQueue, OrderedResults, Producer, Results, Transaction, Variant},
        produce::{deliver, flush_now, wait_all},
        rpc::{Admission, Call, CallReplies, Caller, IncomingCall, StreamCredit},
        sequencer::{Sequencer, SequencerPermit, SequencerTicket},
        set_fetched_batch_max,
        state::{JobRows, Table},
        transact::{TransactionBatcher, TransactionEntry},
        versions::{build_facts, library_versions, librdkafka_version},
        waiting::{Mailbox, Notifier},
    };
}
