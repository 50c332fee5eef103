//! A safe face for librdkafka: the only room of the engine with its foreign functions in it.

mod admin;
mod client;
mod code;
mod config;
mod decompression;
mod end_txns;
mod fetch_memory;
pub(crate) mod ffi;
mod groups;
mod lookup;
mod message;
mod metadata;
mod mock_cluster;
mod queue;
mod renewal;
mod security;
mod tokens;
mod topic_partition;
mod transactions;

pub use admin::{Admin, AdminOutcome, GroupOffset, NewTopic, OffsetAt};
pub(crate) use client::{Client, Kind, OnRenewed, note_let_in, set_deliverer};
pub use code::Code;
pub use config::{ClientConfig, is_secret};
pub use decompression::{Compressed, batch_max, set_batch_max};
pub(crate) use decompression::{Unread, why_unread};
pub(crate) use end_txns::{EndTxnCounts, EndTxns};
pub(crate) use fetch_memory::FetchMemory;
pub(crate) use groups::Presence;
pub use lookup::CommittedOffset;
pub use message::{Batch, MessageRef, TimestampKind};
pub(crate) use message::{FetchError, Fetched, Loose};
pub use metadata::{BrokerInfo, Metadata, PartitionInfo, TopicInfo};
pub use mock_cluster::MockCluster;
pub(crate) use queue::{Event as QueueEvent, Queue};
pub(crate) use security::Refusal;
pub use tokens::{Token, TokenSource};
pub use topic_partition::TopicPartition;
pub(crate) use topic_partition::{Position, TopicPartitionList};
pub(crate) use transactions::{Failure, GroupMetadata, Limit, positions_list};

/// The version of librdkafka that is built in.
pub fn librdkafka_version() -> &'static str {
    // SAFETY: returns a pointer to a constant string.
    unsafe { std::ffi::CStr::from_ptr(rdkafka_sys::rd_kafka_version_str()) }.to_str().unwrap_or("unknown")
}

/// A C string of librdkafka's as ours; empty for null.
///
/// # Safety
/// `text` is null or points to a string that ends in zero.
pub(crate) unsafe fn text_of(text: *const std::ffi::c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { std::ffi::CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Our string as a C string, refused when it holds a zero.
pub(crate) fn c_string(what: &str, text: &str) -> crate::Result<std::ffi::CString> {
    std::ffi::CString::new(text)
        .map_err(|_| crate::Error::Invalid { reason: format!("{what} must not hold a zero byte: {text:?}") })
}
