//! The messages of a batch, whose bytes are in librdkafka's memory or in a copy.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Batch, MessageRef};

/// The messages of a batch from one of them on, and the place of their bytes.
pub enum Storage {
    /// Lent by librdkafka, whose client lives as long as they do; the storage begins with the message `first`.
    Lent {
        /// The batch.
        batch: Arc<Batch>,
        /// The index of the first message.
        first: usize,
    },
    /// Copied, because they are kept for long.
    Copied(Vec<MessageCopy>),
}

/// A copy of one message.
pub struct MessageCopy {
    /// The offset.
    pub offset: i64,
    /// The value; `None` for a tombstone.
    pub value: Option<Box<[u8]>>,
    /// The key.
    pub key: Option<Box<[u8]>>,
    /// Headers in order.
    pub headers: Vec<(String, Option<Box<[u8]>>)>,
    /// Milliseconds since 1970; negative without a timestamp.
    pub timestamp_ms: i64,
}

/// One message, with its bytes in one of these places.
#[derive(Clone, Copy)]
pub enum MessageView<'a> {
    /// In librdkafka's memory.
    Lent(MessageRef<'a>),
    /// In a copy.
    Copied(&'a MessageCopy),
}

/// The bytes of one value, which live as long as this does.
pub enum ValueBytes {
    /// In librdkafka's memory: the batch, and the index of the message in it.
    Lent(Arc<Batch>, usize),
    /// In a copy.
    Copied(Box<[u8]>),
}

impl Storage {
    /// Returns the message at an index, which must be less than the number of messages.
    pub fn view(&self, index: usize) -> MessageView<'_> {
        match self {
            Self::Lent { batch, first } => MessageView::Lent(batch.message(first + index)),
            Self::Copied(copies) => MessageView::Copied(&copies[index]),
        }
    }

    /// Returns the value of the message at an index; empty for a tombstone.
    pub fn value_bytes(&self, index: usize) -> ValueBytes {
        match self {
            Self::Lent { batch, first } => ValueBytes::Lent(Arc::clone(batch), first + index),
            Self::Copied(copies) => ValueBytes::Copied(copies[index].value.clone().unwrap_or_default()),
        }
    }
}

impl<'a> MessageView<'a> {
    /// The offset.
    pub fn offset(self) -> i64 {
        match self {
            Self::Lent(message) => message.offset(),
            Self::Copied(copy) => copy.offset,
        }
    }

    /// The value; `None` for a tombstone.
    pub fn value(self) -> Option<&'a [u8]> {
        match self {
            Self::Lent(message) => message.value(),
            Self::Copied(copy) => copy.value.as_deref(),
        }
    }

    /// The key.
    pub fn key(self) -> Option<&'a [u8]> {
        match self {
            Self::Lent(message) => message.key(),
            Self::Copied(copy) => copy.key.as_deref(),
        }
    }

    /// Milliseconds since 1970; negative without a timestamp.
    pub fn timestamp_ms(self) -> i64 {
        match self {
            Self::Lent(message) => message.timestamp().0,
            Self::Copied(copy) => copy.timestamp_ms,
        }
    }

    /// Headers in order.
    pub fn headers(self) -> Vec<(Cow<'a, str>, Option<&'a [u8]>)> {
        match self {
            Self::Lent(message) => message.headers(),
            Self::Copied(copy) => copy.headers.iter().map(|(name, value)| (name.into(), value.as_deref())).collect(),
        }
    }

    /// Returns the bytes of key, value and headers.
    pub fn size_bytes(self) -> usize {
        match self {
            Self::Lent(message) => message.size_bytes(),
            Self::Copied(copy) => {
                let headers =
                    copy.headers.iter().map(|(name, value)| name.len() + value.as_ref().map_or(0, |it| it.len()));
                self.value().map_or(0, <[u8]>::len) + self.key().map_or(0, <[u8]>::len) + headers.sum::<usize>()
            }
        }
    }

    /// Copies the message.
    pub fn copy(self) -> MessageCopy {
        let headers = self.headers().into_iter().map(|(name, value)| (name.into_owned(), value.map(Into::into)));
        MessageCopy {
            offset: self.offset(),
            value: self.value().map(Into::into),
            key: self.key().map(Into::into),
            headers: headers.collect(),
            timestamp_ms: self.timestamp_ms(),
        }
    }
}

impl ValueBytes {
    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Lent(batch, index) => batch.message(*index).value().unwrap_or_default(),
            Self::Copied(value) => value,
        }
    }
}
