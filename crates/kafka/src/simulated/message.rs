//! Fetched messages.

use std::borrow::Cow;
use std::ffi::CStr;
use std::sync::Arc;

use super::{Client, LogRecord, TimestampKind, TopicPartition};

/// Messages of one topic-partition in offset order.
pub struct Batch {
    at: TopicPartition,
    messages: Vec<Arc<LogRecord>>,
}

impl Batch {
    pub(super) const fn new(at: TopicPartition, messages: Vec<Arc<LogRecord>>) -> Self {
        Self { at, messages }
    }

    /// Returns where the messages come from.
    pub const fn topic_partition(&self) -> &TopicPartition {
        &self.at
    }

    /// Returns the number of messages.
    pub const fn len(&self) -> usize {
        self.messages.len()
    }

    /// Returns whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Returns the bytes of keys and values.
    pub fn size_bytes(&self) -> usize {
        self.iter().map(MessageRef::size_bytes).sum()
    }

    /// Takes the messages apart, to put them into other batches.
    pub fn into_loose(self) -> Vec<Loose> {
        self.messages.into_iter().map(|message| Loose(Some(message))).collect()
    }

    /// Makes a batch of messages that were taken apart.
    pub fn of_loose(at: TopicPartition, messages: impl IntoIterator<Item = Loose>, _client: Arc<Client>) -> Self {
        let messages = messages.into_iter().filter_map(|mut message| message.0.take()).collect();
        Self { at, messages }
    }

    /// Takes off the messages from `index` on.
    #[must_use]
    pub fn split_off(&mut self, index: usize) -> Self {
        Self { at: self.at.clone(), messages: self.messages.split_off(index.min(self.messages.len())) }
    }

    /// Keeps the messages for which `keep` says `Some(true)`, up to the first for which it says `None`.
    pub fn retain_while(&mut self, mut keep: impl FnMut(MessageRef<'_>) -> Option<bool>) {
        let mut is_over = false;
        self.messages.retain(|message| {
            let kept = if is_over { None } else { keep(MessageRef { partition: self.at.partition, message }) };
            is_over |= kept.is_none();
            kept == Some(true)
        });
    }

    /// Puts the messages of another batch behind these.
    pub fn append(&mut self, mut other: Self) {
        self.messages.append(&mut other.messages);
    }

    /// Returns the message at `index`, which must be less than `len`.
    pub fn message(&self, index: usize) -> MessageRef<'_> {
        MessageRef { partition: self.at.partition, message: &self.messages[index] }
    }

    /// Returns all of them, in offset order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = MessageRef<'_>> {
        self.messages.iter().map(|message| MessageRef { partition: self.at.partition, message })
    }
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Batch({}, {} messages)", self.at, self.len())
    }
}

/// A message that is in no batch. The real client loses its memory if it is dropped outside of one: here that panics.
#[derive(Debug)]
pub struct Loose(Option<Arc<LogRecord>>);

impl Loose {
    fn record(&self) -> &LogRecord {
        self.0.as_ref().expect("it leaves only into a batch")
    }

    /// Returns its offset.
    pub fn offset(&self) -> i64 {
        self.record().offset
    }

    /// Returns the epoch of the leader that wrote it.
    pub fn leader_epoch(&self) -> i32 {
        self.record().leader_epoch
    }

    /// Returns its key.
    pub fn key(&self) -> Option<&[u8]> {
        self.record().key.as_deref()
    }

    /// Returns the last header of this name.
    pub fn header(&self, name: &CStr) -> Option<&[u8]> {
        let mut headers = self.record().headers.iter().rev();
        headers.find(|(each, _)| each.as_bytes() == name.to_bytes())?.1.as_deref()
    }
}

impl Drop for Loose {
    fn drop(&mut self) {
        assert!(self.0.is_none() || std::thread::panicking(), "a fetched message was dropped outside of a batch");
    }
}

/// One message of a batch.
#[derive(Clone, Copy)]
pub struct MessageRef<'a> {
    partition: i32,
    message: &'a LogRecord,
}

impl<'a> MessageRef<'a> {
    /// Returns the partition that it is from.
    pub const fn partition(self) -> i32 {
        self.partition
    }

    /// Returns its offset.
    pub const fn offset(self) -> i64 {
        self.message.offset
    }

    /// Returns its value.
    pub fn value(self) -> Option<&'a [u8]> {
        self.message.value.as_deref()
    }

    /// Returns its key.
    pub fn key(self) -> Option<&'a [u8]> {
        self.message.key.as_deref()
    }

    /// Returns the bytes of key, value and headers.
    pub fn size_bytes(self) -> usize {
        let headers = self.message.headers.iter().map(|(name, value)| name.len() + value.as_ref().map_or(0, Vec::len));
        self.value().map_or(0, <[u8]>::len) + self.key().map_or(0, <[u8]>::len) + headers.sum::<usize>()
    }

    /// Returns milliseconds since 1970, and what they mean.
    pub const fn timestamp(self) -> (i64, TimestampKind) {
        (self.message.timestamp_ms, TimestampKind::Appended)
    }

    /// Returns its headers, in order.
    pub fn headers(self) -> Vec<(Cow<'a, str>, Option<&'a [u8]>)> {
        self.message.headers.iter().map(|(name, value)| (Cow::from(name), value.as_deref())).collect()
    }

    /// Returns the epoch of the leader that served it.
    pub const fn leader_epoch(self) -> i32 {
        self.message.leader_epoch
    }
}
