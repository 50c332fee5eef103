//! The results of a job on their way to an output, as Python sees them.

use awoke_engine::produce as engine;
use pyo3::prelude::*;

use super::delivery_handle::wait_for_all;
use crate::consume::Message;
use crate::errors::Result;
use crate::produce::{Bytes, DeliveryHandle, Producer, value_bytes};
use crate::values::bytes;
use crate::waiting::Mailbox;

/// The results of one job, each sent when it is added; their answers are waited for as one.
///
/// A result costs no Python object: its key and its delivery handle are made into some only where it was refused.
#[pyclass(frozen, module = "awoke._native")]
pub struct Results {
    /// With the offset of the message, and what was sent, to send it again.
    pub(super) sent: engine::Deliveries<(i64, Kept)>,
}

/// The part of a record that is kept, to send it again.
pub enum Kept {
    /// A value under the key of its message.
    Value(Py<PyAny>, Option<Box<[u8]>>),
    /// The same, encoded.
    Bytes(Option<Box<[u8]>>, Option<Box<[u8]>>),
    Record(Py<PyAny>),
}

/// The offset of its message, the handle, and a `Record` or the parts of one.
type Taken = (i64, Py<DeliveryHandle>, Py<PyAny>);

#[pymethods]
impl Results {
    #[new]
    fn new() -> Self {
        Self { sent: engine::Deliveries::default() }
    }

    /// Sends a value under the key of its message; arguments, waits and errors are those of `Producer.produce`.
    fn send(
        &self,
        py: Python<'_>,
        producer: &Producer,
        topic: &str,
        message: &Message,
        value: &Bound<'_, PyAny>,
    ) -> Result<()> {
        let (bytes, key) = (value_bytes(producer.encoder.bind(py), value)?, message.copy_key());
        let value_bytes = bytes.as_ref().map(Bytes::as_slice);
        let record = engine::Record { value: value_bytes, key: key.as_deref(), ..engine::Record::default() };
        let handle = producer.send(py, topic, &record, None)?;
        self.sent.push(handle, (message.offset(), Kept::Value(value.clone().unbind(), key)));
        Ok(())
    }

    /// Adds a record that was sent.
    fn keep(&self, offset: i64, handle: &DeliveryHandle, record: Py<PyAny>) -> Result<()> {
        self.sent.push(handle.here()?.clone(), (offset, Kept::Record(record)));
        Ok(())
    }

    fn __len__(&self) -> usize {
        self.sent.len()
    }

    /// Waits until all are answered; returns whether all are delivered. Blocks with the GIL released.
    fn wait(&self, py: Python<'_>) -> Result<bool> {
        Ok(wait_for_all(py, &self.sent.handles(), None)? && self.sent.are_delivered())
    }

    /// Takes all out, in order: the message's offset, the handle, and the parts of a `Record`.
    fn take(&self, py: Python<'_>) -> Result<Vec<Taken>> {
        let taken = self.sent.take().into_iter().map(|(handle, (offset, kept))| {
            let nothing = || py.None();
            let record_of = |value: Py<PyAny>, key: Option<Box<[u8]>>| {
                let parts = (value, bytes(py, key.as_deref()), nothing(), nothing(), nothing());
                parts.into_pyobject(py).map(|parts| parts.into_any().unbind())
            };
            let record = match kept {
                Kept::Record(record) => record,
                Kept::Value(value, key) => record_of(value, key)?,
                Kept::Bytes(value, key) => record_of(bytes(py, value.as_deref()).unbind(), key)?,
            };
            Ok((offset, DeliveryHandle::make(py, handle)?, record))
        });
        taken.collect()
    }

    /// Tells whether all are answered. Does not block. Nothing may be added after this, nor after the next two.
    fn done(&self) -> bool {
        self.sent.completion().is_done()
    }

    /// Returns whether all are delivered. Does not block.
    fn result(&self) -> bool {
        self.sent.are_delivered()
    }

    /// Posts `token` to the mailbox when all are answered; returns False if they are now.
    fn notify(&self, mailbox: &Mailbox, token: u64) -> bool {
        self.sent.completion().register(mailbox.waker(token))
    }
}
