//! The results of one reading of a partition, in the order of its messages.

use std::sync::Arc;

use awoke_engine::produce::{self as engine, ReorderBuffer};
use pyo3::prelude::*;

use super::owner::Owner;
use crate::errors::Result;
use crate::produce::results::Kept;
use crate::produce::{Producer, Results};

/// The most results that are sent before their jobs are told.
const RUN_MAX: usize = 256;

/// A result that waits for its turn.
pub struct Entry {
    pub owner: Arc<Owner>,
    /// Python's `Outgoing` of the job.
    pub outgoing: Py<PyAny>,
    pub place: usize,
    pub answer: Answer,
}

/// The records that are sent for a message.
pub enum Answer {
    Value(Value),
    /// Records that Python sends.
    Records(Py<PyAny>),
}

/// A value under the key of its message.
pub struct Value {
    pub value: Option<Box<[u8]>>,
    pub key: Option<Box<[u8]>>,
}

impl Entry {
    fn offset(&self) -> i64 {
        self.owner.places[self.place].0
    }
}

/// The results of one reading of a partition: they are sent in the order of its messages.
///
/// The thread that brings the missing result also sends those behind it. Any thread.
#[pyclass(frozen, module = "awoke._native")]
pub struct OrderedQueue {
    pub(super) buffer: ReorderBuffer<Entry>,
    producer: Option<Py<Producer>>,
    topic: String,
}

impl OrderedQueue {
    /// Returns the producer of values; none was given where Python sends all results.
    pub(super) fn producer(&self) -> Result<&Producer, awoke_engine::Error> {
        self.producer.as_ref().map(Py::get).ok_or(awoke_engine::Error::Closed { what: "producer" })
    }

    /// Sends a value at once. Blocks with the GIL released while the producer's queue is full.
    pub(super) fn send(
        &self,
        py: Python<'_>,
        value: Option<&[u8]>,
        key: Option<&[u8]>,
    ) -> Result<Arc<engine::DeliveryHandle>> {
        let record = engine::Record { value, key, ..engine::Record::default() };
        self.producer()?.send(py, &self.topic, &record, None)
    }

    /// Sends the results whose turn it is, as the buffer's runner. Blocks while the producer's queue is full.
    pub(super) fn run(&self, py: Python<'_>) {
        loop {
            let run = self.buffer.take_run(RUN_MAX);
            if run.is_empty() {
                return;
            }
            let mut jobs: Vec<(Arc<Owner>, Py<PyAny>)> = Vec::new();
            for entry in &run {
                if !jobs.iter().any(|(owner, _)| Arc::ptr_eq(owner, &entry.owner)) {
                    jobs.push((Arc::clone(&entry.owner), entry.outgoing.clone_ref(py)));
                }
            }
            for (owner, outgoing) in &jobs {
                if owner.begin_sending() {
                    report(py, outgoing, outgoing.call_method0(py, "sending"));
                }
            }
            run.iter().for_each(|entry| entry.owner.end_wait(entry.place));
            run.into_iter().for_each(|entry| self.send_entry(py, entry));
            for (owner, outgoing) in &jobs {
                let Some((sent, failed)) = owner.end_sending() else { continue };
                report(py, outgoing, outgoing.call_method1(py, "sent", (Results { sent }, failed)));
            }
        }
    }

    /// Sends what a message has. The GIL stays with this thread, unless the producer's queue is full: another worker
    /// would take it for a whole job, and this one's messages would seem long.
    fn send_entry(&self, py: Python<'_>, entry: Entry) {
        let (offset, Entry { owner, outgoing, answer, .. }) = (entry.offset(), entry);
        match answer {
            Answer::Records(records) => report(py, &outgoing, outgoing.call_method1(py, "send", (offset, records))),
            Answer::Value(Value { value, key }) => match self.send(py, value.as_deref(), key.as_deref()) {
                Ok(handle) => owner.push(handle, offset, Kept::Bytes(value, key)),
                Err(error) => owner.fail(offset, error.into()),
            },
        }
    }
}

#[pymethods]
impl OrderedQueue {
    /// `producer` sends values to the topic; without it, Python sends all.
    #[new]
    fn new(producer: Option<Py<Producer>>, topic: String) -> Self {
        Self { buffer: ReorderBuffer::default(), producer, topic }
    }

    /// Skips the place of an ordinal, if its turn is not over; `None`: it has no place. Blocks while the producer's
    /// queue is full, if results behind it are sent.
    pub fn skip(&self, py: Python<'_>, ordinal: Option<u64>) {
        if ordinal.is_some_and(|ordinal| self.buffer.skip(ordinal)) {
            self.run(py);
        }
    }

    /// Drops the results that wait, and all that come. Does not block.
    fn close(&self) {
        drop(self.buffer.close());
    }
}

/// Reports what an `Outgoing` has raised, which is a defect of awoke's.
fn report(py: Python<'_>, outgoing: &Py<PyAny>, called: PyResult<Py<PyAny>>) {
    if let Err(error) = called {
        error.write_unraisable(py, Some(outgoing.bind(py)));
    }
}
