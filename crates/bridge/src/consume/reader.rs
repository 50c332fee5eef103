//! A reader without a group, as Python sees it.

use std::collections::BTreeMap;
use std::sync::Arc;

use awoke_engine::Error;
use awoke_engine::clock::Deadline;
use awoke_engine::consume as engine;
use awoke_engine::kafka::TopicPartition;
use pyo3::prelude::*;

use crate::consume::{Batch, Decoders};
use crate::errors::Result;
use crate::events::EventBox;
use crate::open::Open;
use crate::properties::Properties;
use crate::values::duration;

/// Reads partitions without a group, and begins to fetch at once.
///
/// `starts` holds (topic, partition, `earliest` | `latest` | `last` | `offset` | `time`, number).
#[pyclass(frozen, module = "awoke._native")]
pub struct Reader {
    inner: Open<engine::Reader>,
    /// The decoders of each topic that has some.
    decoders: BTreeMap<String, Py<Decoders>>,
    notifier: Arc<awoke_engine::wake::EventFd>,
}

#[pymethods]
impl Reader {
    #[new]
    fn new(
        py: Python<'_>,
        properties: Properties,
        starts: Vec<(String, i32, String, i64)>,
        decoders: BTreeMap<String, Py<Decoders>>,
        events: &EventBox,
    ) -> Result<Self> {
        let starts = starts
            .into_iter()
            .map(|(topic, partition, start, number)| {
                Ok((TopicPartition::new(topic, partition), engine::StartAt::of(&start, number)?))
            })
            .collect::<Result<Vec<_>>>()?;
        let events = Arc::clone(&events.inner);
        let settings = engine::PartitionSettings::default();
        let reader = py.detach(|| engine::Reader::new(&properties.config(), &starts, &settings, events))?;
        let notifier = awoke_engine::wake::EventFd::new()?;
        Ok(Self { inner: Open::new("reader", reader), decoders, notifier: Arc::new(notifier) })
    }

    /// Returns the next batch; (topic, partition) at the end of a partition; `None` when the time was up.
    ///
    /// Blocks with the GIL released; Ctrl-C ends the wait on the main thread.
    #[pyo3(signature = (timeout_s=None))]
    fn next<'py>(&self, py: Python<'py>, timeout_s: Option<f64>) -> Result<Option<Bound<'py, PyAny>>> {
        let deadline = Deadline::after(duration(timeout_s)?);
        let reader = self.inner.get()?;
        loop {
            let read = reader.next_or_notify(&self.notifier)?;
            match read {
                Some(engine::Read::Batch(batch)) => {
                    let (count, topic) = (batch.len(), &*batch.topic_partition().topic);
                    let decoders = self.decoders.get(topic).map(|decoders| decoders.clone_ref(py));
                    return Ok(Some(Bound::new(py, Batch::new(batch, 0, count, 1, decoders))?.into_any()));
                }
                Some(engine::Read::EndOfPartition(at)) => {
                    return Ok(Some((at.topic.to_string(), at.partition).into_pyobject(py)?.into_any()));
                }
                Some(engine::Read::Closed) => return Err(Error::Closed { what: "reader" }.into()),
                None if deadline.has_passed() => return Ok(None),
                None => {
                    crate::waiting::wait_readable(py, &self.notifier, &deadline)?;
                    awoke_engine::wake::Notifier::reset(&*self.notifier);
                }
            }
        }
    }

    /// Returns one past the last message of a partition, as the last fetch saw it; `None` before. Does not block.
    fn end_seen(&self, topic: &str, partition: i32) -> Result<Option<i64>> {
        Ok(self.inner.get()?.end_seen(&TopicPartition::new(topic, partition)))
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
        // A thread that waits in `next` wakes, and drops the last reference.
        self.inner.close(py, engine::Reader::close);
    }
}
