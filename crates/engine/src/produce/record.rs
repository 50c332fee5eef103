//! A message to be sent later.

use std::sync::Arc;

use crate::kafka::Record;

/// A message to be sent later.
#[derive(Clone, Debug)]
pub struct OwnedRecord {
    /// The topic.
    pub topic: Arc<str>,
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
    /// Makes a record without headers, which the partitioner gives its partition.
    pub const fn plain(topic: Arc<str>, value: Option<Vec<u8>>, key: Option<Vec<u8>>) -> Self {
        Self { topic, value, key, partition: None, timestamp_ms: None, headers: Vec::new() }
    }

    /// Calls `send` with a view of each record.
    pub(crate) fn with_all<T>(all: &[Self], send: impl FnOnce(&[Record<'_>]) -> T) -> T {
        let headers: Vec<Vec<_>> = all
            .iter()
            .map(|each| each.headers.iter().map(|(name, value)| (&**name, value.as_deref())).collect())
            .collect();
        let view = |(each, headers)| Self::view(each, headers);
        send(&all.iter().zip(&headers).map(view).collect::<Vec<_>>())
    }

    fn view<'a>(&'a self, headers: &'a Vec<(&'a str, Option<&'a [u8]>)>) -> Record<'a> {
        Record {
            value: self.value.as_deref(),
            key: self.key.as_deref(),
            partition: self.partition,
            timestamp_ms: self.timestamp_ms,
            headers,
            variant: None,
        }
    }
}
