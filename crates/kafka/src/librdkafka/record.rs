//! A message to be sent, and settings of topics that differ from the producer's.

use std::sync::atomic::{AtomicU32, Ordering};

use super::{ClientConfig, ffi};
use crate::{Result, clock};

/// A message to be sent. Everything is copied before it is sent.
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

impl Record<'_> {
    /// Returns its timestamp; `None` lets the client stamp it. While a test has the clock, it is that of the clock.
    pub fn stamp_ms(&self) -> Option<i64> {
        self.timestamp_ms.or_else(clock::stamp_ms)
    }

    /// Returns the size of key, value and headers.
    pub fn size_bytes(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.map_or(0, <[u8]>::len)).sum();
        self.value.map_or(0, <[u8]>::len) + self.key.map_or(0, <[u8]>::len) + headers
    }
}

/// Settings of topics that differ from the producer's: `acks`, compression, time-outs. librdkafka keeps one set of them
/// for a topic and a connection: the first message to a topic decides which.
#[derive(Debug)]
pub struct Variant {
    id: u32,
    properties: ClientConfig,
}

impl Variant {
    /// Makes a variant of properties that librdkafka accepts.
    ///
    /// # Errors
    /// [`crate::Error::Config`]: a property is no topic's, or librdkafka does not know its value.
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

    /// Returns its number; 0 for none, which stands for the producer's own settings.
    pub fn id_of(variant: Option<&Self>) -> u32 {
        variant.map_or(0, |variant| variant.id)
    }

    /// Sets the properties on the configuration of a topic.
    ///
    /// # Safety
    /// The configuration is valid.
    pub(crate) unsafe fn set_on_topic(&self, conf: *mut ffi::rd_kafka_topic_conf_t) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.properties.set_on_topic(conf) }
    }
}
