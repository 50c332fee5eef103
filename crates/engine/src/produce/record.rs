//! A message to be sent, and settings of topics that differ from the producer's.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::Result;
use crate::kafka::ClientConfig;
use awoke_kafka::ffi;

/// A message to be sent. Everything is copied before `produce` returns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Record<'a> {
    /// `None` sends a tombstone.
    pub value: Option<&'a [u8]>,
    /// Decides the partition, where none is given.
    pub key: Option<&'a [u8]>,
    /// `None` lets the partitioner choose.
    pub partition: Option<i32>,
    /// Milliseconds since 1970; `None` for now.
    pub timestamp_ms: Option<i64>,
    /// In order; a name may occur more than once, a value may be missing.
    pub headers: &'a [(&'a str, Option<&'a [u8]>)],
    /// Other settings than the producer's.
    pub variant: Option<&'a Variant>,
}

/// Settings of topics that differ from the producer's: `acks`, compression, time-outs. librdkafka keeps one set of them
/// for a topic and a connection: the first message to a topic decides which.
#[derive(Debug)]
pub struct Variant {
    /// 0 stands for the producer's own settings.
    pub(super) id: u32,
    pub(super) properties: ClientConfig,
}

impl Variant {
    /// Makes a variant of properties that librdkafka accepts.
    ///
    /// # Errors
    /// [`Error::Config`]: a property is no topic's, or librdkafka does not know its value.
    pub fn new(properties: ClientConfig) -> Result<Self> {
        static IDS: AtomicU32 = AtomicU32::new(1);
        // SAFETY: takes nothing; the returned object is ours.
        let conf = unsafe { ffi::rd_kafka_topic_conf_new() };
        // SAFETY: the configuration is valid.
        let checked = unsafe { properties.set_on_topic(conf) };
        // SAFETY: it is ours.
        unsafe { ffi::rd_kafka_topic_conf_destroy(conf) };
        checked.map(|()| Self { id: IDS.fetch_add(1, Ordering::Relaxed), properties })
    }
}

/// A message to be sent later.
#[derive(Clone, Debug, Default)]
pub struct OwnedRecord {
    /// The topic.
    pub topic: String,
    /// As of [`Record`].
    pub value: Option<Vec<u8>>,
    /// As of [`Record`].
    pub key: Option<Vec<u8>>,
    /// As of [`Record`].
    pub partition: Option<i32>,
    /// As of [`Record`].
    pub timestamp_ms: Option<i64>,
    /// As of [`Record`].
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

impl OwnedRecord {
    /// Calls `send` with the topic and a view of the record.
    pub(crate) fn with<T>(&self, send: impl FnOnce(&str, &Record<'_>) -> T) -> T {
        let headers: Vec<_> = self.headers.iter().map(|(name, value)| (&**name, value.as_deref())).collect();
        let (value, key) = (self.value.as_deref(), self.key.as_deref());
        let (partition, timestamp_ms) = (self.partition, self.timestamp_ms);
        send(&self.topic, &Record { value, key, partition, timestamp_ms, headers: &headers, variant: None })
    }
}

impl Record<'_> {
    /// Returns the size of key, value and headers.
    pub(super) fn size_bytes(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.map_or(0, <[u8]>::len)).sum();
        self.value.map_or(0, <[u8]>::len) + self.key.map_or(0, <[u8]>::len) + headers
    }
}
