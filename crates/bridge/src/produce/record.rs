//! A message to be sent, as Python gives it: bytes, text, nothing, or a value to encode.

use std::sync::Arc;

use awoke_engine::produce as engine;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyList, PyMapping, PyString, PyTuple};

/// Bytes of a key or a value, kept for the duration of the call.
pub enum Bytes {
    Bytes(PyBackedBytes),
    Text(PyBackedStr),
}

impl Bytes {
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Text(text) => text.as_bytes(),
        }
    }
}

/// A name and its value.
pub type Header = (PyBackedStr, Option<Bytes>);

pub type HeaderView<'a> = (&'a str, Option<&'a [u8]>);

/// A message to be sent, whose bytes are Python's.
pub struct Outgoing {
    value: Option<Bytes>,
    key: Option<Bytes>,
    headers: Vec<Header>,
    partition: Option<i32>,
    timestamp_ms: Option<i64>,
}

impl Outgoing {
    /// Takes a message from Python; a value that is not bytes, text or nothing goes through the encoder.
    pub fn new(
        encoder: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
        headers: Option<&Bound<'_, PyAny>>,
        partition: Option<i32>,
        timestamp_ms: Option<i64>,
    ) -> PyResult<Self> {
        if let Some(wrong_ms) = timestamp_ms.filter(|timestamp_ms| *timestamp_ms < 1) {
            // librdkafka takes 0 for "now", and Kafka knows no time before 1970.
            let text =
                format!("timestamp_ms is {wrong_ms}: it must be at least 1; leave it out for the time of sending");
            return Err(PyValueError::new_err(text));
        }
        Ok(Self {
            value: value_bytes(encoder, value)?,
            key: key.map(key_bytes).transpose()?.flatten(),
            headers: headers.map(header_list).transpose()?.unwrap_or_default(),
            partition,
            timestamp_ms,
        })
    }

    /// Takes a message of `produce_many` from Python: an `awoke.Record`, a pair of value and key, or else a value.
    pub fn of_record(encoder: &Bound<'_, PyAny>, message: &Bound<'_, PyAny>) -> PyResult<Self> {
        static RECORD: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let Ok(parts) = message.cast::<PyTuple>() else { return Self::new(encoder, message, None, None, None, None) };
        let part = |index: usize| parts.get_item(index).map(|part| Some(part).filter(|part| !part.is_none()));
        if message.get_type().is(RECORD.import(message.py(), "awoke.payloads.message", "Record")?) {
            let partition = part(3)?.map(|partition| partition.extract()).transpose()?;
            let timestamp_ms = part(4)?.map(|timestamp_ms| timestamp_ms.extract()).transpose()?;
            let (key, headers) = (part(1)?, part(2)?);
            return Self::new(encoder, &parts.get_item(0)?, key.as_ref(), headers.as_ref(), partition, timestamp_ms);
        }
        if !message.is_exact_instance_of::<PyTuple>() {
            return Self::new(encoder, message, None, None, None, None); // Another class of tuple is a value.
        }
        if parts.len() != 2 {
            let text = format!(
                "a message is a value, a pair of value and key, or an awoke.Record, not a tuple of {}",
                parts.len()
            );
            return Err(PyTypeError::new_err(text));
        }
        Self::new(encoder, &parts.get_item(0)?, part(1)?.as_ref(), None, None, None)
    }

    /// Takes a topic and a message from an `awoke.Outgoing`.
    pub fn of_message(encoder: &Bound<'_, PyAny>, message: &Bound<'_, PyAny>) -> PyResult<(PyBackedStr, Self)> {
        let (topic, value, key, headers, partition, timestamp_ms): (_, _, Part<'_>, Part<'_>, _, _) =
            message.extract()?;
        Ok((topic, Self::new(encoder, &value, key.as_ref(), headers.as_ref(), partition, timestamp_ms)?))
    }

    /// Calls `send` with the engine's view of many messages.
    pub fn with_all<T>(
        all: &[Self],
        variant: Option<&engine::Variant>,
        send: impl FnOnce(&[engine::Record<'_>]) -> T,
    ) -> T {
        let headers: Vec<_> = all.iter().map(|outgoing| header_views(&outgoing.headers)).collect();
        let records: Vec<_> =
            all.iter().zip(&headers).map(|(outgoing, headers)| outgoing.view(headers, variant)).collect();
        send(&records)
    }

    /// Calls `send` with the engine's view of the message.
    pub fn with<T>(&self, variant: Option<&engine::Variant>, send: impl FnOnce(&engine::Record<'_>) -> T) -> T {
        send(&self.view(&header_views(&self.headers), variant))
    }

    fn view<'a>(&'a self, headers: &'a [HeaderView<'a>], variant: Option<&'a engine::Variant>) -> engine::Record<'a> {
        engine::Record {
            value: self.value.as_ref().map(Bytes::as_slice),
            key: self.key.as_ref().map(Bytes::as_slice),
            partition: self.partition,
            timestamp_ms: self.timestamp_ms,
            headers,
            variant,
        }
    }

    /// Makes a copy, to be sent later.
    pub fn to_owned(&self, topic: Arc<str>) -> engine::OwnedRecord {
        let copy = |bytes: &Option<Bytes>| bytes.as_ref().map(|bytes| bytes.as_slice().to_vec());
        engine::OwnedRecord {
            topic,
            value: copy(&self.value),
            key: copy(&self.key),
            partition: self.partition,
            timestamp_ms: self.timestamp_ms,
            headers: self.headers.iter().map(|(name, value)| (name.to_string(), copy(value))).collect(),
        }
    }
}

type Part<'py> = Option<Bound<'py, PyAny>>;

/// Value, key, headers, partition and time of a message, as Python gives them.
type RecordParts<'py> = (Bound<'py, PyAny>, Part<'py>, Part<'py>, Option<i32>, Option<i64>);

/// Returns the parts of a message of `produce_many`.
pub fn record_parts<'py>(message: &Bound<'py, PyAny>) -> PyResult<RecordParts<'py>> {
    static RECORD_OF: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    RECORD_OF.import(message.py(), "awoke.payloads.message", "record_of")?.call1((message,))?.extract()
}

pub fn value_bytes(encoder: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<Option<Bytes>> {
    if let Some(plain) = plain(value)? {
        return Ok(plain);
    }
    let bytes = encoder.call1((value,))?;
    plain(&bytes)?.ok_or_else(|| PyTypeError::new_err("the encoder must return bytes"))
}

/// Returns bytes, text or nothing as they are; `None` for any other value.
#[allow(clippy::option_option)] // Outer: is it plain? Inner: a tombstone is plain and has no bytes.
fn plain(value: &Bound<'_, PyAny>) -> PyResult<Option<Option<Bytes>>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Some(Some(Bytes::Bytes(bytes.clone().into()))));
    }
    if value.is_none() {
        return Ok(Some(None));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Some(Some(Bytes::Text(text.clone().try_into()?))));
    }
    Ok(None)
}

fn key_bytes(key: &Bound<'_, PyAny>) -> PyResult<Option<Bytes>> {
    plain(key)?.ok_or_else(|| {
        let kind = key.get_type().name().map_or_else(|_| "something else".to_owned(), |name| name.to_string());
        PyTypeError::new_err(format!("a key is bytes, text or None, not {kind}"))
    })
}

/// Returns the engine's view of headers.
pub fn header_views(headers: &[Header]) -> Vec<HeaderView<'_>> {
    headers.iter().map(|(name, value)| (&**name, value.as_ref().map(Bytes::as_slice))).collect()
}

pub fn header_list(headers: &Bound<'_, PyAny>) -> PyResult<Vec<Header>> {
    // A list first: to check for a mapping, Python looks into its registry of abstract classes.
    let mapping = if headers.is_instance_of::<PyList>() { None } else { headers.cast::<PyMapping>().ok() };
    let items = mapping.map_or_else(|| Ok(headers.clone()), |mapping| mapping.items().map(Bound::into_any))?;
    items
        .try_iter()?
        .map(|item| {
            let item = item?;
            let pair = item.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2);
            let pair =
                pair.ok_or_else(|| PyTypeError::new_err("headers are pairs of a name and bytes, text or None"))?;
            let name: PyBackedStr = pair.get_item(0)?.extract()?;
            if name.contains('\0') {
                // librdkafka sends it, and every reader that uses librdkafka sees what is before the zero byte.
                return Err(PyValueError::new_err(format!("the header name {:?} has a zero byte", &*name)));
            }
            let value = plain(&pair.get_item(1)?)?
                .ok_or_else(|| PyTypeError::new_err(format!("header {:?} is bytes, text or None", &*name)))?;
            Ok((name, value))
        })
        .collect()
}
