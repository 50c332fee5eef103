//! Batches that Python makes, of messages that no broker has sent.

use awoke_engine::kafka::{MessageCopy, Storage, TopicPartition};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::consume::{Batch, Decoders};

type Bytes = Option<PyBackedBytes>;

/// Offset, value, key, headers and timestamp of a message.
type Parts = (i64, Bytes, Bytes, Vec<(String, Bytes)>, Option<i64>);

/// Makes a batch of messages, each given as offset, value, key, headers and timestamp in milliseconds. Copies the
/// bytes. Does not block.
#[pyfunction]
#[pyo3(signature = (topic, partition, messages, decoders=None, attempt=1))]
pub fn make_batch(
    topic: String,
    partition: i32,
    messages: Vec<Parts>,
    decoders: Option<Py<Decoders>>,
    attempt: u32,
) -> Batch {
    let copies: Vec<_> = messages.into_iter().map(copy).collect();
    let length = copies.len();
    Batch::of(TopicPartition::new(topic, partition), Storage::Copied(copies), length, (attempt, decoders))
}

fn copy((offset, value, key, headers, timestamp_ms): Parts) -> MessageCopy {
    let boxed = |bytes: Bytes| bytes.map(|bytes| Box::from(&*bytes));
    let headers = headers.into_iter().map(|(name, value)| (name, boxed(value))).collect();
    MessageCopy { offset, value: boxed(value), key: boxed(key), headers, timestamp_ms: timestamp_ms.unwrap_or(-1) }
}
