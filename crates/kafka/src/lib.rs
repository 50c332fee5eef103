//! A Kafka client behind a safe interface. All of librdkafka, and every call of its foreign functions, is in here.

use awoke_wake::{self as wake, clock, fork_guard};

mod admin;
mod admin_calls;
mod client;
mod code;
mod config;
mod consumer;
mod decompression;
mod end_txns;
mod error;
pub mod events;
mod fetch_memory;
mod ffi;
mod groups;
mod lookup;
mod message;
mod metadata;
mod mock_cluster;
mod options;
mod producer;
mod queue;
mod record;
mod renewal;
mod security;
mod sender;
mod tokens;
mod topic_partition;
mod transactions;

pub use admin::{Admin, AdminOutcome, GroupOffset, NewTopic, OffsetAt};
pub use client::{Client, Kind, OnRenewed};
pub use code::Code;
pub use config::{ClientConfig, is_secret};
pub use decompression::{Compressed, batch_max, set_batch_max};
pub use decompression::{Unread, why_unread};
pub use end_txns::{EndTxnCounts, EndTxns};
pub use error::{Error, Result};
pub use fetch_memory::FetchMemory;
pub use groups::Presence;
pub use lookup::CommittedOffset;
pub use message::{Batch, MessageRef, TimestampKind};
pub use message::{FetchError, Fetched, Loose};
pub use metadata::{BrokerInfo, Metadata, PartitionInfo, TopicInfo};
pub use mock_cluster::MockCluster;
pub use options::ClientOptions;
pub use producer::partition_of_key;
pub use queue::{Event as QueueEvent, EventKind, Queue};
pub use record::{Record, Variant};
pub use security::Refusal;
pub use sender::{Delivery, Refused, Reported, Topic};
pub use tokens::{Token, TokenSource};
pub use topic_partition::TopicPartition;
pub use topic_partition::{Position, TopicPartitionList};
pub use transactions::{Failure, GroupMetadata, Limit, positions_list};

/// The version of librdkafka that is built in.
pub fn librdkafka_version() -> &'static str {
    // SAFETY: returns a pointer to a constant string.
    unsafe { std::ffi::CStr::from_ptr(ffi::rd_kafka_version_str()) }.to_str().unwrap_or("unknown")
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
