//! A hook to run between the jobs of a partition.

use std::sync::{Mutex, PoisonError};

use awoke_engine::Error;
use awoke_engine::consume as engine;
use awoke_engine::kafka::TopicPartition;
use pyo3::prelude::*;

use crate::consume::Partition;
use crate::errors::Result;

/// A hook to run, and the partition that waits for it.
#[pyclass(frozen, module = "awoke._native")]
pub struct HookJob {
    at: TopicPartition,
    /// The number of the assignment of the partition.
    #[pyo3(get)]
    generation: u64,
    /// The number of its route.
    #[pyo3(get)]
    route_number: u64,
    /// `assigned`, `tick`, `revoked`, `lost` or `shutdown`.
    #[pyo3(get)]
    name: &'static str,
    /// `None` when the hook has ended.
    inner: Mutex<Option<engine::HookJob>>,
}

impl HookJob {
    pub fn new(hook: engine::HookJob) -> Self {
        let name = match hook.hook() {
            engine::Hook::Assigned => "assigned",
            engine::Hook::Tick => "tick",
            engine::Hook::Revoked => "revoked",
            engine::Hook::Lost => "lost",
            engine::Hook::Shutdown => "shutdown",
        };
        let (at, generation) = (hook.partition().topic_partition().clone(), hook.partition().generation());
        let route_number = hook.partition().route_number();
        Self { at, generation, route_number, name, inner: Mutex::new(Some(hook)) }
    }
}

#[pymethods]
impl HookJob {
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

    /// Returns the partition. Raises `ClosedError` when the hook has ended.
    fn assignment(&self) -> Result<Partition> {
        let partition = {
            let hook = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            hook.as_ref().map(|hook| Partition::new(hook.partition()))
        };
        Ok(partition.ok_or(Error::Closed { what: "hook" })?)
    }

    /// Gives the partition back. Does not block.
    fn finish(&self) {
        let hook = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(hook) = hook {
            hook.finish();
        }
    }
}
