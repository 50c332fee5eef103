//! A reader without a group, as Python sees it.

use std::sync::Arc;

use awoke_engine::Error;
use awoke_engine::clock::Deadline;
use awoke_engine::consume as engine;
use awoke_engine::kafka::TopicPartition;
use pyo3::prelude::*;

use crate::batch::Batch;
use crate::errors::{duration, to_python};
use crate::events::EventBox;
use crate::open::Open;
use crate::properties::Properties;
use crate::route::start_at;

/// Reads partitions without a group.
#[pyclass(frozen, module = "awoke._native")]
pub struct Reader {
    inner: Open<engine::Reader>,
    notifier: Arc<awoke_engine::wake::EventFd>,
}

#[pymethods]
impl Reader {
    /// Begins to fetch. `starts` holds (topic, partition, `earliest` | `latest` | `last` | `offset` | `time`, number).
    #[new]
    fn new(
        py: Python<'_>,
        properties: Properties,
        starts: Vec<(String, i32, String, i64)>,
        events: &EventBox,
    ) -> PyResult<Self> {
        let starts = starts
            .into_iter()
            .map(|(topic, partition, start, number)| {
                Ok((TopicPartition::new(topic, partition), start_at(&start, number)?))
            })
            .collect::<PyResult<Vec<_>>>()?;
        let events = Arc::clone(&events.inner);
        let settings = engine::PartitionSettings::default();
        let reader = py
            .detach(|| engine::Reader::new(&properties.config(), &starts, &settings, events))
            .map_err(|error| to_python(&error))?;
        let notifier = awoke_engine::wake::EventFd::new().map_err(|error| to_python(&error))?;
        Ok(Self { inner: Open::new("reader", reader), notifier: Arc::new(notifier) })
    }

    /// Returns the next batch; (topic, partition) at the end of a partition; `None` when the time was up.
    ///
    /// Blocks with the GIL released; Ctrl-C ends the wait on the main thread.
    #[pyo3(signature = (timeout_s=None))]
    fn next<'py>(&self, py: Python<'py>, timeout_s: Option<f64>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let deadline = Deadline::after(duration(timeout_s)?);
        let reader = self.open()?;
        loop {
            let read = reader.next_or_notify(&self.notifier).map_err(|error| to_python(&error))?;
            match read {
                Some(engine::Read::Batch(batch)) => {
                    let count = batch.len();
                    return Ok(Some(Bound::new(py, Batch::new(batch, 0, count, 1, None))?.into_any()));
                }
                Some(engine::Read::EndOfPartition(at)) => {
                    return Ok(Some((at.topic.to_string(), at.partition).into_pyobject(py)?.into_any()));
                }
                Some(engine::Read::Closed) => return Err(to_python(&Error::Closed { what: "reader" })),
                None if deadline.has_passed() => return Ok(None),
                None => {
                    crate::waiting::wait_readable(py, &self.notifier, &deadline)?;
                    awoke_engine::wake::Notifier::reset(&*self.notifier);
                }
            }
        }
    }

    /// Returns a descriptor that is readable when there is something to read after `next` found nothing.
    fn fileno(&self) -> i32 {
        self.notifier.descriptor()
    }

    /// Makes `fileno` unreadable until there is something again.
    fn clear(&self) {
        awoke_engine::wake::Notifier::reset(&*self.notifier);
    }

    /// Stops fetching. Blocks with the GIL released. Closing again, or in a forked child, does nothing.
    fn close(&self, py: Python<'_>) {
        if let Ok(Some(reader)) = self.inner.take() {
            py.detach(|| {
                reader.close(); // A thread that waits in `next` wakes, and drops the last reference.
                drop(reader);
            });
        }
    }
}

impl Reader {
    fn open(&self) -> PyResult<Arc<engine::Reader>> {
        self.inner.get().map_err(|error| to_python(&error))
    }
}
