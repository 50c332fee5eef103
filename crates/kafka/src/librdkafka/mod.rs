//! The client: librdkafka behind safe types. Only `ffi` and these files know its functions.

use crate::seam::{
    AccessFailure, CommittedOffset, Delivery, DescribedTopic, EndTxns, EndedLinger, EventKind, Failure, FetchError,
    Fetched, Kind, Limit, Metadata, OnRenewed, Owner, Position, Presence, Refused, Reported, TimestampKind, TopicId,
    TopicPartition, Unanswered, Unread,
};
use crate::{Code, Error};

mod admin;
mod client;
mod config;
mod consumer;
mod decompression;
mod end_txns;
mod fetch_memory;
mod ffi;
mod groups;
mod linger;
mod lookup;
mod message;
mod metadata;
#[cfg(feature = "vendored")]
mod openssl;
mod options;
mod partition_list;
mod patches;
mod producer;
mod queue;
mod record;
mod renewal;
mod security;
mod sender;
#[path = "../seam/statement.rs"]
mod statement;
mod storage;
mod tokens;
mod transactions;
mod versions;

pub use admin::{Admin, AdminOutcome, AdminRequest};
pub use client::Client;
pub use config::{ClientConfig, is_secret};
pub use decompression::{batch_max, set_batch_max, why_unread};
pub use fetch_memory::FetchMemory;
pub use message::{Batch, Loose, MessageRef};
pub use options::ClientOptions;
pub use partition_list::TopicPartitionList;
pub use producer::partition_of_key;
pub use queue::{Event as QueueEvent, Queue};
pub use record::{Record, Variant};
pub use sender::Topic;
pub use statement::positions_list;
pub use storage::{MessageCopy, MessageView, Storage, ValueBytes};
pub use tokens::{Token, TokenSource};
pub use transactions::GroupMetadata;
pub use versions::{library_versions, librdkafka_version};

/// Returns the constant's name of an error code without its prefix: `_TRANSPORT`, `UNKNOWN_TOPIC_OR_PART`.
pub(crate) fn name_of(code: Code) -> String {
    // SAFETY: takes any number, returns a constant string.
    unsafe { text_of(ffi::rd_kafka_err2name(code.0)) }
}

/// Returns a sentence about an error code, for people.
pub(crate) fn description_of(code: Code) -> String {
    // SAFETY: takes any number, returns a constant string.
    unsafe { text_of(ffi::rd_kafka_err2str(code.0)) }
}

/// A C string of librdkafka's as ours; empty for null.
///
/// # Safety
/// `text` is null or points to a string that ends in zero.
unsafe fn text_of(text: *const std::ffi::c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { std::ffi::CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Our string as a C string, refused when it holds a zero. It may be a secret, so the error does not quote it.
fn c_string(what: &str, text: &str) -> crate::Result<std::ffi::CString> {
    std::ffi::CString::new(text).map_err(|_| Error::Invalid { reason: format!("{what} must not hold a zero byte") })
}
