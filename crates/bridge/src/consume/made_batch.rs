//! Batches that Python makes, of messages that no broker has sent.

use awoke_engine::kafka::{MessageCopy, Storage, TopicPartition};
use pyo3::prelude::*;

use crate::consume::{Batch, Decoders};

type Bytes = Option<Vec<u8>>;

/// Offset, value, key, headers and timestamp of a message.
type Parts = (i64, Bytes, Bytes, Vec<(String, Bytes)>, Option<i64>);

/// Makes a batch of messages, each given as offset, value, key, headers and timestamp in milliseconds. Copies the
/// bytes. Does not block.
#[pyfunction]
#[pyo3(signature = (at, messages, decoders=None, attempt=1))]
pub fn make_batch(at: (String, i32), messages: Vec<Parts>, decoders: Option<Py<Decoders>>, attempt: u32) -> Batch {
    let (length, copies) = (messages.len(), messages.into_iter().map(copy).collect());
    Batch::of(TopicPartition::new(at.0, at.1), Storage::Copied(copies), length, (attempt, decoders))
}

fn copy((offset, value, key, headers, timestamp_ms): Parts) -> MessageCopy {
    let headers = headers.into_iter().map(|(name, value)| (name, value.map(Into::into))).collect();
    let (value, key) = (value.map(Into::into), key.map(Into::into));
    MessageCopy { offset, value, key, headers, timestamp_ms: timestamp_ms.unwrap_or(-1) }
}
