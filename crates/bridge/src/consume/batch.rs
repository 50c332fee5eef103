//! Batches as lazy views: a Python object is made for what user code reads, and a value is copied once at most.

#![allow(clippy::redundant_closure_for_method_calls)] // `MessageView::offset` would be for one lifetime, not for all.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, TryLockError};

use awoke_engine::kafka::{Batch as EngineBatch, MessageView, Storage, TopicPartition};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::consume::decoding::Part;
use crate::consume::{BatchIterator, Decoders, Message};
use crate::values::bytes;

/// Messages of one topic-partition in offset order; at least one.
///
/// A weak reference tells the runtime that user code keeps a batch beyond its job.
#[pyclass(frozen, generic, weakref, module = "awoke._native", sequence)]
pub struct Batch {
    pub at: TopicPartition,
    messages: Messages,
    length: usize,
    /// The number of the attempt at the first message, from 1.
    #[pyo3(get)]
    pub attempt: u32,
    /// Converts bytes for user code; `None` leaves them.
    pub decoders: Option<Py<Decoders>>,
}

/// The messages of a batch.
enum Messages {
    /// The batch's own messages. Replaced once, by `detach`.
    Own(RwLock<Storage>),
    /// The messages at these indexes of another batch, which counts as kept while this one is.
    Picked { of: Py<Batch>, indexes: Arc<[usize]> },
}

impl Batch {
    /// Makes a batch of the messages from `first` to before `end`.
    pub fn new(
        native: Arc<EngineBatch>,
        first: usize,
        end: usize,
        attempt: u32,
        decoders: Option<Py<Decoders>>,
    ) -> Self {
        let at = native.topic_partition().clone();
        Self::of(at, Storage::Lent { batch: native, first }, end - first, (attempt, decoders))
    }

    /// Makes a batch of the first `length` messages of a storage.
    pub fn of(at: TopicPartition, messages: Storage, length: usize, made: (u32, Option<Py<Decoders>>)) -> Self {
        Self { at, messages: Messages::Own(RwLock::new(messages)), length, attempt: made.0, decoders: made.1 }
    }

    /// Returns how many messages there are.
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Returns the offset of the message at `index`, which must be less than `len`.
    pub fn offset_of(&self, index: usize) -> i64 {
        self.with(index, |message| message.offset())
    }

    pub fn storage(&self) -> RwLockReadGuard<'_, Storage> {
        match &self.messages {
            Messages::Own(storage) => storage.read().unwrap_or_else(PoisonError::into_inner),
            Messages::Picked { of, .. } => of.get().storage(),
        }
    }

    /// Returns the index of a message of this batch in its storage.
    pub fn storage_index(&self, index: usize) -> usize {
        match &self.messages {
            Messages::Own(_) => index,
            Messages::Picked { indexes, .. } => indexes[index],
        }
    }

    /// Returns the indexes of its messages in another batch's storage; `None` if the messages are its own.
    pub fn picked(&self) -> Option<Arc<[usize]>> {
        match &self.messages {
            Messages::Own(_) => None,
            Messages::Picked { indexes, .. } => Some(Arc::clone(indexes)),
        }
    }

    /// Calls `read` with one message.
    ///
    /// `read` may make Python strings and bytes, but no object that Python's garbage collector tracks. Making one may
    /// run a finalizer, which may call this again while `detach` waits for the lock, and would wait for ever.
    pub fn with<T>(&self, index: usize, read: impl FnOnce(MessageView<'_>) -> T) -> T {
        read(self.storage().view(self.storage_index(index)))
    }

    /// Calls `read` with each message, under the same condition.
    pub fn each<T>(&self, read: impl Fn(MessageView<'_>) -> T) -> Vec<T> {
        let storage = self.storage();
        (0..self.length).map(|index| read(storage.view(self.storage_index(index)))).collect()
    }

    fn offset_at(&self, at: usize) -> PyResult<i64> {
        let empty = || PyIndexError::new_err("an empty batch has no offsets");
        (self.length > 0).then(|| self.offset_of(at)).ok_or_else(empty)
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

    /// The offset of the first message.
    ///
    /// Raises:
    ///     IndexError: the batch is empty.
    #[getter]
    fn first_offset(&self) -> PyResult<i64> {
        self.offset_at(0)
    }

    /// The offset of the last message.
    ///
    /// Raises:
    ///     IndexError: the batch is empty.
    #[getter]
    fn last_offset(&self) -> PyResult<i64> {
        self.offset_at(self.length.saturating_sub(1))
    }

    fn __len__(&self) -> usize {
        self.length
    }

    fn __getitem__(slf: &Bound<'_, Self>, index: isize) -> PyResult<Message> {
        let length = slf.get().__len__();
        let from_start = if index < 0 { index + length as isize } else { index };
        if from_start < 0 || from_start as usize >= length {
            return Err(PyIndexError::new_err(format!("message {index} of a batch of {length}")));
        }
        Ok(Message::new(slf.clone().unbind(), from_start as usize))
    }

    fn __iter__(slf: &Bound<'_, Self>) -> BatchIterator {
        BatchIterator::new(slf.clone().unbind())
    }

    /// Returns all values in offset order: decoded, where the route has a type.
    ///
    /// Raises:
    ///     DecodeError: names the first message that does not decode.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.decode_all(py, Part::Value)
    }

    /// Returns all values in offset order as bytes; `None` for tombstones.
    fn raw_values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.each(|message| bytes(py, message.value())))
    }

    /// Returns all keys in offset order: decoded, where the route has a type for keys.
    ///
    /// `None` for messages without one.
    ///
    /// Raises:
    ///     DecodeError: names the first message whose key does not decode.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.decode_all(py, Part::Key)
    }

    /// Returns all offsets in order.
    fn offsets(&self) -> Vec<i64> {
        self.each(|message| message.offset())
    }

    /// Keys and values of all messages together.
    #[getter]
    fn size_bytes(&self) -> usize {
        self.each(|message| message.size_bytes()).into_iter().sum()
    }

    /// Returns the messages at these places, counted from 0, in this order. Copies no bytes.
    ///
    /// Raises:
    ///     IndexError: a place that the batch does not have.
    fn pick(slf: &Bound<'_, Self>, places: Vec<usize>) -> PyResult<Self> {
        let (py, batch) = (slf.py(), slf.get());
        if let Some(index) = places.iter().find(|index| **index >= batch.length) {
            return Err(PyIndexError::new_err(format!("message {index} of a batch of {}", batch.length)));
        }
        let attempt = if places.first() == Some(&0) { batch.attempt } else { 1 };
        let length = places.len();
        let indexes = places.iter().map(|index| batch.storage_index(*index)).collect();
        let of = match &batch.messages {
            Messages::Own(_) => slf.clone().unbind(),
            Messages::Picked { of, .. } => of.clone_ref(py),
        };
        let decoders = batch.decoders.as_ref().map(|decoders| decoders.clone_ref(py));
        Ok(Self { at: batch.at.clone(), messages: Messages::Picked { of, indexes }, length, attempt, decoders })
    }

    /// Copies the messages out of librdkafka's memory and frees it. Does not block.
    ///
    /// awoke does so when the job of a kept batch has ended.
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
                // The reader makes Python objects, and may need the GIL for that.
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
}
