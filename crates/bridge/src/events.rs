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

/// Sets fields of the same names.
macro_rules! set {
    ($fields:expr, $($name:ident),+) => {{
        $($fields.set_item(stringify!($name), $name)?;)+
    }};
}

fn convert(py: Python<'_>, event: Event) -> PyResult<(String, &'static str, Bound<'_, PyDict>)> {
    let (name, fields) = (event.what.name(), PyDict::new(py));
    match event.what {
        What::Log { level, facility, text } => set!(fields, level, facility, text),
        What::Error { code, text, fatal: is_fatal } => {
            set_code(&fields, code)?;
            set!(fields, text, is_fatal);
        }
        What::FetchFailed { at, code, text } | What::Stuck { at, code, text } => {
            set_at(&fields, &at)?;
            set_code(&fields, code)?;
            set!(fields, text);
        }
        What::Statistics(json) => set!(fields, json),
        What::Assigned(partitions) | What::Revoked(partitions) | What::Lost(partitions) | What::Unowned(partitions) => {
            set_partitions(&fields, &partitions)?;
        }
        What::Shared { apps, topics } => set!(fields, apps, topics),
        What::OutputBlocked { at, messages, for_s, text } => {
            set_at(&fields, &at)?;
            set!(fields, messages, for_s, text);
        }
        What::OutputUnblocked { at, text } => {
            set_at(&fields, &at)?;
            set!(fields, text);
        }
        What::DeliveryLost { topic, code, text, messages } => {
            let topic = &*topic;
            set_code(&fields, code)?;
            set!(fields, topic, text, messages);
        }
        What::JobOverdue(at) => set_partitions(&fields, &[at])?,
        What::CommitFailed { partitions, code, will_retry } => {
            set_code(&fields, code)?;
            set!(fields, will_retry);
            set_partitions(&fields, &partitions)?;
        }
        What::TransactionAborted { code, text } => {
            set_code(&fields, code)?;
            set!(fields, text);
        }
        What::ProducerReplaced { reason } => set!(fields, reason),
        What::ReplyRefused { at, offset, code } => {
            set_at(&fields, &at)?;
            set_code(&fields, code)?;
            let text = code.description();
            set!(fields, offset, text);
        }
        What::ClockStepped { by_ms } => set!(fields, by_ms),
        What::Rewound { at, from: from_offset, to: to_offset, reason } => {
            set_at(&fields, &at)?;
            set!(fields, from_offset, to_offset, reason);
        }
        What::Committed(offsets) => {
            let named = |(at, offset): &(TopicPartition, i64)| (at.topic.to_string(), at.partition, *offset);
            let offsets: Vec<_> = offsets.iter().map(named).collect();
            set!(fields, offsets);
        }
    }
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

fn set_partitions(fields: &Bound<'_, PyDict>, partitions: &[TopicPartition]) -> PyResult<()> {
    let partitions: Vec<_> = partitions.iter().map(|at| (at.topic.to_string(), at.partition)).collect();
    fields.set_item("partitions", partitions)
}
