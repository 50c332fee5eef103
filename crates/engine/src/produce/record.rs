//! A message to be sent later.

use crate::kafka::Record;

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
