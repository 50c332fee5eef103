//! Messages and batches as lazy views: Python objects are made for what is asked, and values are copied once at most.

#![allow(clippy::redundant_closure_for_method_calls)] // `View::offset` would be for one lifetime, not for all.

use std::borrow::Cow;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, TryLockError};

use awoke_engine::kafka::{Batch as EngineBatch, MessageRef, TopicPartition};
use pyo3::exceptions::{PyBufferError, PyIndexError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyGenericAlias, PyList, PyMemoryView, PyString, PyType};

/// Messages of one topic-partition in offset order.
#[pyclass(frozen, module = "awoke._native", sequence)]
pub struct Batch {
    at: TopicPartition,
    messages: Messages,
    length: usize,
    /// Which try of the first message this is, from 1.
    attempt: u32,
    /// Turns a value's bytes into what user code wants; `None` leaves them.
    decoder: Option<Py<PyAny>>,
}

/// Whose messages they are.
enum Messages {
    /// The batch's own. Replaced once, by `detach`.
    Own(RwLock<Storage>),
    /// Those at these places of another batch, which counts as kept while this one is.
    Picked { of: Py<Batch>, places: Box<[usize]> },
}

/// Where the bytes are.
enum Storage {
    /// Lent by librdkafka, whose client lives as long as they do; messages before `first` were done in an earlier try.
    Lent { native: Arc<EngineBatch>, first: usize },
    /// Copied, because somebody kept the batch or a message longer than the job.
    Copied(Vec<Copy>),
}

struct Copy {
    offset: i64,
    value: Option<Box<[u8]>>,
    key: Option<Box<[u8]>>,
    headers: Vec<(String, Option<Box<[u8]>>)>,
    timestamp_ms: i64,
}

/// One message, wherever its bytes are.
#[derive(Clone, std::marker::Copy)]
enum View<'a> {
    Lent(MessageRef<'a>),
    Copied(&'a Copy),
}

impl<'a> View<'a> {
    fn offset(self) -> i64 {
        match self {
            Self::Lent(message) => message.offset(),
            Self::Copied(copy) => copy.offset,
        }
    }

    fn value(self) -> Option<&'a [u8]> {
        match self {
            Self::Lent(message) => message.value(),
            Self::Copied(copy) => copy.value.as_deref(),
        }
    }

    fn key(self) -> Option<&'a [u8]> {
        match self {
            Self::Lent(message) => message.key(),
            Self::Copied(copy) => copy.key.as_deref(),
        }
    }

    fn timestamp_ms(self) -> i64 {
        match self {
            Self::Lent(message) => message.timestamp().0,
            Self::Copied(copy) => copy.timestamp_ms,
        }
    }

    fn headers(self) -> Vec<(Cow<'a, str>, Option<&'a [u8]>)> {
        match self {
            Self::Lent(message) => message.headers(),
            Self::Copied(copy) => copy.headers.iter().map(|(name, value)| (name.into(), value.as_deref())).collect(),
        }
    }

    fn copy(self) -> Copy {
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
    fn view(&self, index: usize) -> View<'_> {
        match self {
            Self::Lent { native, first } => View::Lent(native.message(first + index)),
            Self::Copied(copies) => View::Copied(&copies[index]),
        }
    }
}

impl Batch {
    /// The messages from `first` to before `end`.
    pub fn new(native: Arc<EngineBatch>, first: usize, end: usize, attempt: u32, decoder: Option<Py<PyAny>>) -> Self {
        let (at, length) = (native.topic_partition().clone(), end - first);
        Self { at, messages: Messages::Own(RwLock::new(Storage::Lent { native, first })), length, attempt, decoder }
    }

    /// How many messages there are.
    pub const fn len(&self) -> usize {
        self.length
    }

    /// The offset of the message at `index`, which must be less than `len`.
    pub fn offset_of(&self, index: usize) -> i64 {
        self.with(index, |message| message.offset())
    }

    fn storage(&self) -> RwLockReadGuard<'_, Storage> {
        match &self.messages {
            Messages::Own(storage) => storage.read().unwrap_or_else(PoisonError::into_inner),
            Messages::Picked { of, .. } => of.get().storage(),
        }
    }

    /// Where a message of this batch stands in its storage.
    fn place(&self, index: usize) -> usize {
        match &self.messages {
            Messages::Own(_) => index,
            Messages::Picked { places, .. } => places[index],
        }
    }

    /// Calls `read` with one message.
    ///
    /// It may make strings and bytes of Python's, and no object that Python's garbage collector tracks: making one may run a finalizer,
    /// which may come back here while `detach` waits for its turn, and wait for ever.
    fn with<T>(&self, index: usize, read: impl FnOnce(View<'_>) -> T) -> T {
        read(self.storage().view(self.place(index)))
    }

    /// Calls `read` with each message, under the same condition.
    fn each<T>(&self, read: impl Fn(View<'_>) -> T) -> Vec<T> {
        let storage = self.storage();
        (0..self.length).map(|index| read(storage.view(self.place(index)))).collect()
    }

    fn check_not_empty(&self) -> PyResult<()> {
        if self.length > 0 { Ok(()) } else { Err(PyIndexError::new_err("an empty batch has no offsets")) }
    }

    fn decode<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        let (value, offset) = self.with(index, |message| (bytes(py, message.value()), message.offset()));
        let Some(decoder) = &self.decoder else { return Ok(value) };
        let is_tombstone = value.is_none();
        decoder.bind(py).call1((value,)).map_err(|cause| self.decode_error(py, offset, is_tombstone, cause))
    }

    fn decode_error(&self, py: Python<'_>, offset: i64, is_tombstone: bool, cause: PyErr) -> PyErr {
        let at = &self.at;
        let text = if is_tombstone {
            format!("{at} offset {offset}: is a tombstone, and the route's type takes no None: say value=T | None")
        } else {
            format!("{at} offset {offset}: the value does not decode: {cause}")
        };
        let made = py
            .import("awoke.errors")
            .and_then(|errors| errors.getattr("DecodeError"))
            .and_then(|class| class.call1((text, &*at.topic, at.partition, offset)));
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
        &self.at.topic
    }

    /// The partition.
    #[getter]
    fn partition(&self) -> i32 {
        self.at.partition
    }

    /// Offset of the first message.
    #[getter]
    fn first_offset(&self) -> PyResult<i64> {
        self.check_not_empty()?;
        Ok(self.offset_of(0))
    }

    /// Offset of the last message.
    #[getter]
    fn last_offset(&self) -> PyResult<i64> {
        self.check_not_empty()?;
        Ok(self.offset_of(self.length - 1))
    }

    /// Which try of the first message this is, from 1.
    #[getter]
    fn attempt(&self) -> u32 {
        self.attempt
    }

    fn __len__(&self) -> usize {
        self.length
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
        let values = (0..self.length).map(|index| self.decode(py, index)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, values)
    }

    /// All values in offset order as bytes; `None` for tombstones.
    fn raw_values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.each(|message| bytes(py, message.value())))
    }

    /// All keys in offset order as bytes; `None` for messages without one.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.each(|message| bytes(py, message.key())))
    }

    /// All offsets in order.
    fn offsets(&self) -> Vec<i64> {
        self.each(|message| message.offset())
    }

    /// Keys and values of all messages together.
    #[getter]
    fn size_bytes(&self) -> usize {
        let size = |message: View<'_>| message.value().map_or(0, <[u8]>::len) + message.key().map_or(0, <[u8]>::len);
        self.each(size).into_iter().sum()
    }

    /// The messages at these places, in this order; see the stub.
    #[allow(clippy::needless_pass_by_value)] // Comes converted from Python.
    fn pick(slf: &Bound<'_, Self>, places: Vec<usize>) -> PyResult<Self> {
        let (py, batch) = (slf.py(), slf.get());
        if let Some(place) = places.iter().find(|place| **place >= batch.length) {
            return Err(PyIndexError::new_err(format!("message {place} of a batch of {}", batch.length)));
        }
        let attempt = if places.first() == Some(&0) { batch.attempt } else { 1 };
        let length = places.len();
        let places = places.iter().map(|place| batch.place(*place)).collect();
        let of = match &batch.messages {
            Messages::Own(_) => slf.clone().unbind(),
            Messages::Picked { of, .. } => of.clone_ref(py),
        };
        let decoder = batch.decoder.as_ref().map(|decoder| decoder.clone_ref(py));
        Ok(Self { at: batch.at.clone(), messages: Messages::Picked { of, places }, length, attempt, decoder })
    }

    /// Copies the messages out of librdkafka's memory and lets go of it. Does not block.
    ///
    /// Called when a job has ended and user code has kept something of its batch.
    pub fn detach(&self, py: Python<'_>) {
        let storage = match &self.messages {
            Messages::Own(storage) => storage,
            Messages::Picked { of, .. } => return of.get().detach(py),
        };
        let copies = self.each(|message| message.copy());
        let mut storage = loop {
            match storage.try_write() {
                Ok(storage) => break storage,
                Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
                // Whoever reads makes objects of Python's, and may need the GIL for that.
                Err(TryLockError::WouldBlock) => py.detach(|| drop(storage.write())),
            }
        };
        *storage = Storage::Copied(copies);
    }

    fn __repr__(&self) -> String {
        let at = &self.at;
        if self.__len__() == 0 {
            return format!("<Batch {at}, empty>");
        }
        let (first, last) = (self.offset_of(0), self.offset_of(self.length - 1));
        format!("<Batch {at}, {} messages, offsets {first} to {last}>", self.length)
    }

    #[classmethod]
    fn __class_getitem__<'py>(
        cls: &Bound<'py, PyType>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyGenericAlias>> {
        PyGenericAlias::new(cls.py(), cls.as_any(), item)
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
    pub fn new(batch: Py<Batch>, index: usize) -> Self {
        Self { batch, index, decoded: PyOnceLock::new() }
    }

    /// As `Batch::detach`.
    pub fn detach(&self, py: Python<'_>) {
        self.batch.get().detach(py);
    }

    fn with<T>(&self, read: impl FnOnce(View<'_>) -> T) -> T {
        self.batch.get().with(self.index, read)
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
        self.with(|message| message.offset())
    }

    /// The key as bytes, or `None`.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.with(|message| bytes(py, message.key()))
    }

    /// The value: decoded once, where the route has a type; bytes otherwise; `None` for a tombstone.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let batch = self.batch.get();
        if batch.decoder.is_none() {
            return Ok(self.with(|message| bytes(py, message.value())));
        }
        let decoded = self.decoded.get_or_try_init(py, || batch.decode(py, self.index).map(Bound::unbind))?;
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
        let (batch, place) = (message.batch.get(), message.batch.get().place(message.index));
        let lent = match &*batch.storage() {
            Storage::Lent { native, first } => Lent::Native(Arc::clone(native), first + place),
            Storage::Copied(copies) => Lent::Copy(copies[place].value.clone().unwrap_or_default()),
        };
        let buffer = Bound::new(slf.py(), ValueBuffer { lent })?;
        PyMemoryView::from(&buffer).map(Some)
    }

    /// Headers in order as pairs of name and bytes (or `None`); a name may come more than once.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let headers: Vec<_> = self.with(|message| {
            let pairs = message.headers().into_iter();
            pairs.map(|(name, value)| (PyString::new(py, &name), bytes(py, value))).collect()
        });
        PyList::new(py, headers)
    }

    /// Milliseconds since 1970, or `None`.
    #[getter]
    fn timestamp_ms(&self) -> Option<i64> {
        let timestamp_ms = self.with(|message| message.timestamp_ms());
        (timestamp_ms >= 0).then_some(timestamp_ms)
    }

    /// Which try of this message it is, from 1.
    #[getter]
    fn attempt(&self) -> u32 {
        if self.index == 0 { self.batch.get().attempt } else { 1 }
    }

    fn __repr__(&self) -> String {
        let size = self.with(|message| message.value().map_or(0, <[u8]>::len));
        format!("<Message {} offset {}, {size} bytes>", self.batch.get().at, self.offset())
    }

    #[classmethod]
    fn __class_getitem__<'py>(
        cls: &Bound<'py, PyType>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyGenericAlias>> {
        PyGenericAlias::new(cls.py(), cls.as_any(), item)
    }
}

/// Lends the bytes of a message's value; keeps librdkafka's memory for as long as somebody looks at it.
#[pyclass(frozen, module = "awoke._native")]
pub struct ValueBuffer {
    lent: Lent,
}

enum Lent {
    Native(Arc<EngineBatch>, usize),
    Copy(Box<[u8]>),
}

#[pymethods]
impl ValueBuffer {
    /// # Safety
    /// Called by Python with a view to fill.
    #[allow(clippy::needless_pass_by_value)] // The form that the protocol has.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let value = match &slf.get().lent {
            Lent::Native(batch, index) => batch.message(*index).value().unwrap_or_default(),
            Lent::Copy(value) => value,
        };
        // SAFETY: the bytes live as long as the exporter, which the view keeps alive, and they are read-only.
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

pub fn bytes<'py>(py: Python<'py>, value: Option<&[u8]>) -> Bound<'py, PyAny> {
    value.map_or_else(|| py.None().into_bound(py), |value| PyBytes::new(py, value).into_any())
}
