//! The engine's events, as tuples of a client, a name and fields.

use std::sync::Arc;

use awoke_engine::events::{Event, EventBox as EngineBox, What, event_box};
use awoke_engine::kafka::{Code, TopicPartition};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::Result;

/// The box that the engine's clients put their events in. It is bounded: the oldest events are dropped first.
#[pyclass(frozen, module = "awoke._native")]
pub struct EventBox {
    pub inner: Arc<EngineBox>,
}

#[pymethods]
impl EventBox {
    #[new]
    fn new() -> Result<Self> {
        Ok(Self { inner: event_box()? })
    }

    /// The descriptor that becomes readable when there are events.
    fn fileno(&self) -> i32 {
        self.inner.notifier().descriptor()
    }

    /// Takes all events, oldest first: (client, name, fields). Does not block.
    fn drain<'py>(&self, py: Python<'py>) -> PyResult<Vec<(String, &'static str, Bound<'py, PyDict>)>> {
        self.inner.drain().into_iter().map(|event| convert(py, event)).collect()
    }

    /// Returns the number of events that were dropped because they were not taken in time.
    fn dropped(&self) -> u64 {
        self.inner.dropped()
    }
}

fn convert(py: Python<'_>, event: Event) -> PyResult<(String, &'static str, Bound<'_, PyDict>)> {
    let fields = PyDict::new(py);
    let name = match event.what {
        What::Log { level, facility, text } => {
            fields.set_item("level", level)?;
            fields.set_item("facility", facility)?;
            fields.set_item("text", text)?;
            "client.log"
        }
        What::Error { code, text, fatal } => {
            set_code(&fields, code)?;
            fields.set_item("text", text)?;
            fields.set_item("is_fatal", fatal)?;
            "client.error"
        }
        What::FetchFailed { at, code, text } => {
            set_at(&fields, &at)?;
            set_code(&fields, code)?;
            fields.set_item("text", text)?;
            "fetch.failed"
        }
        What::Statistics(json) => {
            fields.set_item("json", json)?;
            "client.statistics"
        }
        What::Assigned(partitions) => set_partitions(&fields, &partitions, "partitions.assigned")?,
        What::Revoked(partitions) => set_partitions(&fields, &partitions, "partitions.revoked")?,
        What::Lost(partitions) => set_partitions(&fields, &partitions, "partitions.lost")?,
        What::JobOverdue(at) => set_partitions(&fields, &[at], "job.overdue")?,
        What::CommitFailed { partitions, code, will_retry } => {
            set_code(&fields, code)?;
            fields.set_item("will_retry", will_retry)?;
            set_partitions(&fields, &partitions, "commit.failed")?
        }
        What::TransactionAborted { code, text } => {
            set_code(&fields, code)?;
            fields.set_item("text", text)?;
            "transaction.aborted"
        }
        What::ProducerReplaced { reason } => {
            fields.set_item("reason", reason)?;
            "producer.replaced"
        }
        What::Stuck { at, code, text } => {
            set_at(&fields, &at)?;
            set_code(&fields, code)?;
            fields.set_item("text", text)?;
            "partition.stuck"
        }
        What::ReplyRefused { at, offset, code } => {
            set_at(&fields, &at)?;
            fields.set_item("offset", offset)?;
            set_code(&fields, code)?;
            fields.set_item("text", code.description())?;
            "rpc.reply_refused"
        }
        What::ClockStepped { by_ms } => {
            fields.set_item("by_ms", by_ms)?;
            "clock.stepped"
        }
        What::Rewound { at, from, to, reason } => {
            set_at(&fields, &at)?;
            fields.set_item("from_offset", from)?;
            fields.set_item("to_offset", to)?;
            fields.set_item("reason", reason)?;
            "partition.rewound"
        }
        What::Committed(offsets) => {
            let offsets: Vec<_> =
                offsets.iter().map(|(at, offset)| (at.topic.to_string(), at.partition, *offset)).collect();
            fields.set_item("offsets", offsets)?;
            "offsets.committed"
        }
    };
    Ok((event.client.to_string(), name, fields))
}

fn set_at(fields: &Bound<'_, PyDict>, at: &TopicPartition) -> PyResult<()> {
    fields.set_item("topic", &*at.topic)?;
    fields.set_item("partition", at.partition)
}

fn set_code(fields: &Bound<'_, PyDict>, code: Code) -> PyResult<()> {
    fields.set_item("code", code.0)?;
    fields.set_item("code_name", code.name())
}

fn set_partitions(
    fields: &Bound<'_, PyDict>,
    partitions: &[TopicPartition],
    name: &'static str,
) -> PyResult<&'static str> {
    let partitions: Vec<_> = partitions.iter().map(|at| (at.topic.to_string(), at.partition)).collect();
    fields.set_item("partitions", partitions)?;
    Ok(name)
}
