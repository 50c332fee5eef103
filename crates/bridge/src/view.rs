//! One message, whose bytes are in librdkafka's memory or in a copy.

#![allow(clippy::redundant_closure_for_method_calls)] // `View::offset` would be for one lifetime, not for all.

use std::borrow::Cow;
use std::sync::Arc;

use awoke_engine::kafka::{Batch as EngineBatch, MessageRef};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The place of the bytes.
pub enum Storage {
    /// Lent by librdkafka, whose client lives as long as they do; messages before `first` were done in an earlier
    /// attempt.
    Lent { native: Arc<EngineBatch>, first: usize },
    /// Copied, because user code kept the batch or a message longer than the job.
    Copied(Vec<Copy>),
}

pub struct Copy {
    pub offset: i64,
    pub value: Option<Box<[u8]>>,
    pub key: Option<Box<[u8]>>,
    pub headers: Vec<(String, Option<Box<[u8]>>)>,
    pub timestamp_ms: i64,
}

/// One message, with its bytes in one of these places.
#[derive(Clone, std::marker::Copy)]
pub enum View<'a> {
    Lent(MessageRef<'a>),
    Copied(&'a Copy),
}

impl<'a> View<'a> {
    pub fn offset(self) -> i64 {
        match self {
            Self::Lent(message) => message.offset(),
            Self::Copied(copy) => copy.offset,
        }
    }

    pub fn value(self) -> Option<&'a [u8]> {
        match self {
            Self::Lent(message) => message.value(),
            Self::Copied(copy) => copy.value.as_deref(),
        }
    }

    pub fn key(self) -> Option<&'a [u8]> {
        match self {
            Self::Lent(message) => message.key(),
            Self::Copied(copy) => copy.key.as_deref(),
        }
    }

    pub fn timestamp_ms(self) -> i64 {
        match self {
            Self::Lent(message) => message.timestamp().0,
            Self::Copied(copy) => copy.timestamp_ms,
        }
    }

    pub fn headers(self) -> Vec<(Cow<'a, str>, Option<&'a [u8]>)> {
        match self {
            Self::Lent(message) => message.headers(),
            Self::Copied(copy) => copy.headers.iter().map(|(name, value)| (name.into(), value.as_deref())).collect(),
        }
    }

    pub fn copy(self) -> Copy {
        let headers = self.headers().into_iter().map(|(name, value)| (name.into_owned(), value.map(Into::into)));
        Copy {
            offset: self.offset(),
            value: self.value().map(Into::into),
            key: self.key().map(Into::into),
            headers: headers.collect(),
            timestamp_ms: self.timestamp_ms(),
        }
    }
}

impl Storage {
    pub fn view(&self, index: usize) -> View<'_> {
        match self {
            Self::Lent { native, first } => View::Lent(native.message(first + index)),
            Self::Copied(copies) => View::Copied(&copies[index]),
        }
    }
}

/// Converts a value or a key to bytes of Python's; `None` stays `None`.
pub fn bytes<'py>(py: Python<'py>, value: Option<&[u8]>) -> Bound<'py, PyAny> {
    value.map_or_else(|| py.None().into_bound(py), |value| PyBytes::new(py, value).into_any())
}
