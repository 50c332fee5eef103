//! The record of a request: librdkafka's memory while the call is being read, copied before the call waits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use awoke_engine::Error;
use awoke_engine::rpc::LentRecord;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::consume::{Batch, Message};
use crate::errors::Result;
use crate::values::bytes;

/// The record of a request.
pub struct RequestRecord {
    /// librdkafka's memory, and the place in it; `None` once it was released.
    lent: Mutex<Option<LentRecord>>,
    /// Made on first use.
    message: PyOnceLock<Py<Message>>,
}

impl RequestRecord {
    pub fn new(lent: LentRecord) -> Self {
        Self { lent: Mutex::new(Some(lent)), message: PyOnceLock::new() }
    }

    fn lent(&self) -> MutexGuard<'_, Option<LentRecord>> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The arguments as they came; `b""` for none. Raises `ClosedError` if the memory was released before the
    /// message was made.
    pub fn body<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        if let Some((native, index)) = &*self.lent() {
            return Ok(bytes(py, Some(native.message(*index).value().unwrap_or_default())));
        }
        let value = self.message(py)?.get().raw_value(py);
        Ok(if value.is_none() { bytes(py, Some(b"")) } else { value })
    }

    /// The record as a message. Raises `ClosedError` if the memory was released before it was made.
    pub fn message(&self, py: Python<'_>) -> Result<&Py<Message>> {
        // Before the check of `message`: the memory is released after the message was made.
        let lent = self.lent().clone();
        if let Some(message) = self.message.get(py) {
            return Ok(message);
        }
        self.message_of(py, lent.ok_or(Error::Closed { what: "call" })?)
    }

    /// The headers by name, the last of several with one name; with `names`, only those. Raises as `message`.
    pub fn headers<'a, 'py>(
        &self,
        py: Python<'py>,
        names: Option<impl Iterator<Item = &'a str>>,
    ) -> Result<Bound<'py, PyDict>> {
        let all = PyDict::from_sequence(self.message(py)?.getattr(py, "headers")?.bind(py))?;
        let Some(names) = names else { return Ok(all) };
        let found = PyDict::new(py);
        for name in names {
            if let Some(value) = all.get_item(name)? {
                found.set_item(name, value)?;
            }
        }
        Ok(found)
    }

    /// Releases librdkafka's memory, which would keep the client alive. With `keep`, or if the message was made,
    /// the record is copied first. A second call does nothing.
    pub fn release(&self, py: Python<'_>, keep: bool) -> Result<()> {
        // A queued call may be over, and its record released, before the thread that queued it calls this.
        let lent = self.lent().clone();
        if let Some(lent) = lent
            && (keep || self.message.get(py).is_some())
        {
            self.message_of(py, lent)?.get().detach(py);
        }
        // After the copy: another thread that asks for the body meanwhile finds one or the other.
        self.lent().take();
        Ok(())
    }

    /// Makes the message from lent memory. Other threads may run meanwhile: `PyOnceLock` releases the GIL.
    fn message_of(&self, py: Python<'_>, lent: LentRecord) -> Result<&Py<Message>> {
        self.message.get_or_try_init(py, || {
            let (native, index): (Arc<_>, usize) = lent;
            let batch = Py::new(py, Batch::new(native, index, index + 1, 1, None))?;
            Ok(Py::new(py, Message::new(batch, 0))?)
        })
    }
}
