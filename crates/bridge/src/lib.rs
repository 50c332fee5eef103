//! The bridge between awoke's engine and Python: converts, releases the GIL, calls, converts. It makes no decisions.
//!
//! One file per noun of the engine. Invariant: the GIL is never held during a wait. It is not released where no wait is
//! needed: a result that is ready is taken first.

#![allow(clippy::doc_markdown)] // Doc comments are what Python's `help` shows: they name its errors as it does.

mod admin;
mod admission;
#[cfg(target_os = "linux")]
mod allocator;
mod batch;
mod batcher;
mod call;
mod call_replies;
mod caller;
mod decoding;
#[cfg(target_os = "linux")]
mod decompressors;
mod delivery_handle;
mod errors;
mod events;
mod group_member;
#[cfg(target_os = "linux")]
mod groupless;
mod hook_job;
mod incoming_call;
mod job;
mod lane_assignment;
mod lifeline;
mod main_thread;
mod message;
mod mock_cluster;
mod open;
mod partition;
mod producer;
mod properties;
mod reader;
mod record;
mod request_record;
mod route;
mod scheduler;
mod sequencer;
mod sequencer_permit;
mod sequencer_sink;
mod settings;
mod stream_credit;
mod transaction;
mod turns;
mod value_buffer;
mod versions;
mod view;
mod waiting;

use pyo3::prelude::*;

/// True if the value of this librdkafka property must never be shown.
#[pyfunction]
fn is_secret(property: &str) -> bool {
    awoke_engine::kafka::is_secret(property)
}

/// Bounds what one fetched batch may take in memory, in bytes, for all consumers of the process from here on.
#[pyfunction]
fn set_fetched_batch_max(bytes: usize) {
    awoke_engine::kafka::set_batch_max(bytes);
}

#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(versions::librdkafka_version, module)?)?;
    module.add_function(wrap_pyfunction!(versions::library_versions, module)?)?;
    module.add_function(wrap_pyfunction!(versions::build_facts, module)?)?;
    module.add_function(wrap_pyfunction!(is_secret, module)?)?;
    module.add_function(wrap_pyfunction!(set_fetched_batch_max, module)?)?;
    module.add_function(wrap_pyfunction!(delivery_handle::first_undelivered, module)?)?;
    module.add_function(wrap_pyfunction!(delivery_handle::flush_now, module)?)?;
    module.add_function(wrap_pyfunction!(delivery_handle::wait_all, module)?)?;
    module.add_class::<admin::Admin>()?;
    module.add_class::<admin::PendingCall>()?;
    module.add_class::<admission::Admission>()?;
    module.add_class::<call_replies::CallReplies>()?;
    module.add_class::<call::Call>()?;
    module.add_class::<caller::Caller>()?;
    module.add_class::<events::EventBox>()?;
    module.add_class::<group_member::GroupMember>()?;
    module.add_class::<group_member::PendingCommit>()?;
    module.add_class::<incoming_call::IncomingCall>()?;
    module.add_class::<lifeline::Lifeline>()?;
    module.add_class::<batch::Batch>()?;
    module.add_class::<message::BatchIterator>()?;
    module.add_class::<message::Message>()?;
    module.add_class::<value_buffer::ValueBuffer>()?;
    module.add_class::<mock_cluster::MockCluster>()?;
    module.add_class::<partition::Partition>()?;
    module.add_class::<delivery_handle::DeliveryHandle>()?;
    module.add_class::<producer::Producer>()?;
    module.add_class::<producer::Variant>()?;
    module.add_class::<reader::Reader>()?;
    module.add_class::<route::Route>()?;
    module.add_class::<hook_job::HookJob>()?;
    module.add_class::<job::Job>()?;
    module.add_class::<scheduler::Scheduler>()?;
    module.add_class::<lane_assignment::LaneAssignment>()?;
    module.add_class::<sequencer::Sequencer>()?;
    module.add_class::<sequencer_permit::SequencerPermit>()?;
    module.add_class::<sequencer_permit::SequencerTicket>()?;
    module.add_class::<stream_credit::StreamCredit>()?;
    module.add_class::<transaction::Transaction>()?;
    module.add_class::<batcher::TransactionEntry>()?;
    module.add_class::<batcher::TransactionBatcher>()?;
    module.add_class::<waiting::Notifier>()?;
    module.add_class::<waiting::Mailbox>()?;
    Ok(())
}
