//! Messages, and the iterator of a batch.

#![allow(clippy::redundant_closure_for_method_calls)] // `MessageView::offset` would be for one lifetime, not for all.

use std::sync::atomic::{AtomicUsize, Ordering};

use awoke_engine::kafka::MessageView;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyMemoryView};

use crate::consume::decoding::Part;
use crate::consume::{Batch, ValueBuffer};
use crate::values::bytes;

/// One message: a view into its batch, which it keeps alive. Keep values rather than messages for long.
#[pyclass(frozen, generic, freelist = 512, module = "awoke._native")]
pub struct Message {
    batch: Py<Batch>,
    index: usize,
    decoded: PyOnceLock<Py<PyAny>>,
}

impl Message {
    pub fn new(batch: Py<Batch>, index: usize) -> Self {
        Self { batch, index, decoded: PyOnceLock::new() }
    }

    /// Copies the messages of the batch, as `Batch::detach` does.
    pub fn detach(&self, py: Python<'_>) {
        self.batch.get().detach(py);
    }

    /// Copies the key.
    pub fn copy_key(&self) -> Option<Box<[u8]>> {
        self.with(|message| message.key().map(Box::from))
    }

    fn with<T>(&self, read: impl FnOnce(MessageView<'_>) -> T) -> T {
        self.batch.get().with(self.index, read)
    }
}

#[pymethods]
impl Message {
    /// The topic.
    #[getter]
    fn topic(&self) -> &str {
        &self.batch.get().at.topic
    }

    /// The partition.
    #[getter]
    fn partition(&self) -> i32 {
        self.batch.get().at.partition
    }

    /// The offset.
    #[getter]
    pub fn offset(&self) -> i64 {
        self.with(|message| message.offset())
    }

    /// Its key: decoded, if the route has a type for keys; else bytes. `None` for a message without a key.
    ///
    /// Raises:
    ///     DecodeError: the bytes can't be read as the type of the keys, or there is no key and the type takes no None.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.batch.get().decode(py, self.index, Part::Key)
    }

    /// The key as bytes, or `None`.
    #[getter]
    fn raw_key<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.with(|message| bytes(py, message.key()))
    }

    /// Its value: decoded once, if the route has a type; else bytes.
    ///
    /// A tombstone is None if the type takes it: `value=Order | None` and `Message[Order | None]`. Without a type it is
    /// None, too: a route whose topic has tombstones takes `Message[bytes | None]`.
    ///
    /// Raises:
    ///     DecodeError: the bytes can't be read as the route's type, or it is a tombstone and the type takes no None.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let batch = self.batch.get();
        if batch.decoders.is_none() {
            return Ok(self.with(|message| bytes(py, message.value())));
        }
        let decode = || batch.decode(py, self.index, Part::Value).map(Bound::unbind);
        let decoded = self.decoded.get_or_try_init(py, decode)?;
        Ok(decoded.bind(py).clone())
    }

    /// The value as bytes; `None` for a tombstone.
    #[getter]
    pub fn raw_value<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.with(|message| bytes(py, message.value()))
    }

    /// The value as a read-only memoryview of the fetched bytes, not copied; `None` for a tombstone.
    #[getter]
    fn value_buffer<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyMemoryView>>> {
        let message = slf.get();
        if message.with(|message| message.value().is_none()) {
            return Ok(None);
        }
        let batch = message.batch.get();
        let lent = batch.storage().value_bytes(batch.storage_index(message.index));
        let buffer = Bound::new(slf.py(), ValueBuffer { lent })?;
        PyMemoryView::from(&buffer).map(Some)
    }

    /// Headers in order as pairs of name and bytes (or `None`); a name may occur more than once.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.batch.get().headers(py, self.index)
    }

    /// Milliseconds since 1970, or `None`.
    #[getter]
    fn timestamp_ms(&self) -> Option<i64> {
        let timestamp_ms = self.with(|message| message.timestamp_ms());
        (timestamp_ms >= 0).then_some(timestamp_ms)
    }

    /// The number of the attempt at this message, from 1.
    #[getter]
    fn attempt(&self) -> u32 {
        if self.index == 0 { self.batch.get().attempt } else { 1 }
    }

    fn __repr__(&self) -> String {
        let size = self.with(|message| message.value().map_or(0, <[u8]>::len));
        format!("<Message {} offset {}, {size} bytes>", self.batch.get().at, self.offset())
    }
}

/// Iterates over a batch.
#[pyclass(frozen, module = "awoke._native")]
pub struct BatchIterator {
    batch: Py<Batch>,
    next: AtomicUsize,
}

impl BatchIterator {
    pub const fn new(batch: Py<Batch>) -> Self {
        Self { batch, next: AtomicUsize::new(0) }
    }
}

#[pymethods]
impl BatchIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Option<Message> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        (index < self.batch.get().len()).then(|| Message::new(self.batch.clone_ref(py), index))
    }
}
