//! Messages and batches as lazy views: Python objects are made for what is asked, and values are copied once at most.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use awoke_engine::kafka::{Batch as EngineBatch, MessageRef};
use pyo3::exceptions::{PyBufferError, PyIndexError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyList, PyMemoryView, PyType};

/// Messages of one topic-partition in offset order.
#[pyclass(frozen, module = "awoke._native", sequence)]
pub struct Batch {
    native: Arc<EngineBatch>,
    /// Messages before this one were done in an earlier try.
    first: usize,
    /// Which try of the first message this is, from 1.
    attempt: u32,
    /// Turns a value's bytes into what user code wants; `None` leaves them.
    decoder: Option<Py<PyAny>>,
}

impl Batch {
    pub fn new(native: Arc<EngineBatch>, first: usize, attempt: u32, decoder: Option<Py<PyAny>>) -> Self {
        Self { native, first, attempt, decoder }
    }

    fn native(&self, index: usize) -> MessageRef<'_> {
        self.native.message(self.first + index)
    }

    fn natives(&self) -> impl ExactSizeIterator<Item = MessageRef<'_>> {
        self.native.iter().skip(self.first)
    }

    fn decode<'py>(&self, py: Python<'py>, message: MessageRef<'_>) -> PyResult<Bound<'py, PyAny>> {
        let value = bytes(py, message.value());
        let Some(decoder) = self.decoder.as_ref().filter(|_| !value.is_none()) else { return Ok(value) };
        decoder.bind(py).call1((value,)).map_err(|cause| self.decode_error(py, message, cause))
    }

    fn decode_error(&self, py: Python<'_>, message: MessageRef<'_>, cause: PyErr) -> PyErr {
        let at = self.native.topic_partition();
        let text = format!("{at} offset {}: the value does not decode: {cause}", message.offset());
        let made = py
            .import("awoke.errors")
            .and_then(|errors| errors.getattr("DecodeError"))
            .and_then(|class| class.call1((text, &*at.topic, at.partition, message.offset())));
        match made {
            Ok(error) => {
                let error = PyErr::from_value(error);
                error.set_cause(py, Some(cause));
                error
            }
            Err(failed) => failed,
        }
    }
}

#[pymethods]
impl Batch {
    /// The topic.
    #[getter]
    fn topic(&self) -> &str {
        &self.native.topic_partition().topic
    }

    /// The partition.
    #[getter]
    fn partition(&self) -> i32 {
        self.native.topic_partition().partition
    }

    /// Offset of the first message.
    #[getter]
    fn first_offset(&self) -> i64 {
        self.native(0).offset()
    }

    /// Offset of the last message.
    #[getter]
    fn last_offset(&self) -> i64 {
        self.native.message(self.native.len() - 1).offset()
    }

    /// Which try of the first message this is, from 1.
    #[getter]
    fn attempt(&self) -> u32 {
        self.attempt
    }

    fn __len__(&self) -> usize {
        self.native.len() - self.first
    }

    fn __getitem__(slf: &Bound<'_, Self>, index: isize) -> PyResult<Message> {
        let length = slf.get().__len__();
        let place = if index < 0 { index + length as isize } else { index };
        if place < 0 || place as usize >= length {
            return Err(PyIndexError::new_err(format!("message {index} of a batch of {length}")));
        }
        Ok(Message::new(slf.clone().unbind(), place as usize))
    }

    fn __iter__(slf: &Bound<'_, Self>) -> BatchIterator {
        BatchIterator { batch: slf.clone().unbind(), next: 0.into() }
    }

    /// All values in offset order: decoded, where the route has a type.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        if self.decoder.is_none() {
            return self.raw_values(py);
        }
        let values = self.natives().map(|message| self.decode(py, message)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, values)
    }

    /// All values in offset order as bytes; `None` for tombstones.
    fn raw_values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.natives().map(|message| bytes(py, message.value())).collect::<Vec<_>>())
    }

    /// All keys in offset order as bytes; `None` for messages without one.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.natives().map(|message| bytes(py, message.key())).collect::<Vec<_>>())
    }

    /// All offsets in order.
    fn offsets(&self) -> Vec<i64> {
        self.natives().map(MessageRef::offset).collect()
    }

    fn __repr__(&self) -> String {
        let at = self.native.topic_partition();
        if self.__len__() == 0 {
            return format!("<Batch {at}, empty>");
        }
        format!("<Batch {at}, {} messages, offsets {} to {}>", self.__len__(), self.first_offset(), self.last_offset())
    }

    #[classmethod]
    fn __class_getitem__(cls: &Bound<'_, PyType>, _item: &Bound<'_, PyAny>) -> Py<PyType> {
        cls.clone().unbind()
    }
}

/// Iterates over a batch.
#[pyclass(frozen, module = "awoke._native")]
pub struct BatchIterator {
    batch: Py<Batch>,
    next: std::sync::atomic::AtomicUsize,
}

#[pymethods]
impl BatchIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Option<Message> {
        let index = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        (index < self.batch.get().__len__()).then(|| Message::new(self.batch.clone_ref(py), index))
    }
}

/// One message: a view into its batch, which it keeps alive.
#[pyclass(frozen, freelist = 512, module = "awoke._native")]
pub struct Message {
    batch: Py<Batch>,
    index: usize,
    decoded: PyOnceLock<Py<PyAny>>,
}

impl Message {
    fn new(batch: Py<Batch>, index: usize) -> Self {
        Self { batch, index, decoded: PyOnceLock::new() }
    }

    fn native(&self) -> MessageRef<'_> {
        self.batch.get().native(self.index)
    }
}

#[pymethods]
impl Message {
    /// The topic.
    #[getter]
    fn topic(&self) -> &str {
        self.batch.get().topic()
    }

    /// The partition.
    #[getter]
    fn partition(&self) -> i32 {
        self.batch.get().partition()
    }

    /// The offset.
    #[getter]
    fn offset(&self) -> i64 {
        self.native().offset()
    }

    /// The key as bytes, or `None`.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        bytes(py, self.native().key())
    }

    /// The value: decoded once, where the route has a type; bytes otherwise; `None` for a tombstone.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let batch = self.batch.get();
        if batch.decoder.is_none() {
            return Ok(bytes(py, self.native().value()));
        }
        let decoded = self.decoded.get_or_try_init(py, || batch.decode(py, self.native()).map(Bound::unbind))?;
        Ok(decoded.bind(py).clone())
    }

    /// The value as bytes; `None` for a tombstone.
    #[getter]
    fn raw_value<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        bytes(py, self.native().value())
    }

    /// The value as a read-only memoryview of the fetched bytes, not copied; `None` for a tombstone.
    #[getter]
    fn value_buffer<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyMemoryView>>> {
        if slf.get().native().value().is_none() {
            return Ok(None);
        }
        let buffer = Bound::new(slf.py(), ValueBuffer { message: slf.clone().unbind() })?;
        PyMemoryView::from(&buffer).map(Some)
    }

    /// Headers in order as pairs of name and bytes (or `None`); a name may come more than once.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> Vec<(String, Bound<'py, PyAny>)> {
        self.native().headers().into_iter().map(|(name, value)| (name, bytes(py, value))).collect()
    }

    /// Milliseconds since 1970, or `None`.
    #[getter]
    fn timestamp_ms(&self) -> Option<i64> {
        let (timestamp_ms, _) = self.native().timestamp();
        (timestamp_ms >= 0).then_some(timestamp_ms)
    }

    /// Which try of this message it is, from 1.
    #[getter]
    fn attempt(&self) -> u32 {
        if self.index == 0 { self.batch.get().attempt } else { 1 }
    }

    fn __repr__(&self) -> String {
        let at = self.batch.get().native.topic_partition();
        format!("<Message {at} offset {}, {} bytes>", self.offset(), self.native().value().map_or(0, <[u8]>::len))
    }

    #[classmethod]
    fn __class_getitem__(cls: &Bound<'_, PyType>, _item: &Bound<'_, PyAny>) -> Py<PyType> {
        cls.clone().unbind()
    }
}

/// Lends the bytes of a message's value.
#[pyclass(frozen, module = "awoke._native")]
pub struct ValueBuffer {
    message: Py<Message>,
}

#[pymethods]
impl ValueBuffer {
    /// # Safety
    /// Called by Python with a view to fill.
    #[allow(clippy::needless_pass_by_value)] // The form that the protocol has.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let value = slf.get().message.get().native().value().unwrap_or_default();
        // SAFETY: the bytes live as long as the message, which the exporter keeps alive, and they are read-only.
        let filled = unsafe {
            let start = value.as_ptr().cast::<c_void>().cast_mut();
            ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, value.len() as isize, 1, flags)
        };
        if filled == 0 {
            Ok(())
        } else {
            Err(PyErr::take(slf.py()).unwrap_or_else(|| PyBufferError::new_err("refused")))
        }
    }
}

fn bytes<'py>(py: Python<'py>, value: Option<&[u8]>) -> Bound<'py, PyAny> {
    value.map_or_else(|| py.None().into_bound(py), |value| PyBytes::new(py, value).into_any())
}
