//! Admin calls, as Python sees them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use awoke_engine::Error;
use awoke_engine::clock::Deadline;
use awoke_engine::kafka::{self as engine, AdminOutcome as Outcome, AdminRequest as Request};
use awoke_engine::wake::Completion;
use pyo3::IntoPyObjectExt as _;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::Result;
use crate::events::EventBox;
use crate::open::Open;
use crate::properties::Properties;
use crate::values::seconds;
use crate::waiting::{Mailbox, resolve, wait_for};

/// (partition, leader, replicas, in-sync replicas).
type Partition = (i32, i32, Vec<i32>, Vec<i32>);
/// Brokers as (id, address), topics as (name, error code or 0, partitions).
type Found = (Vec<(i32, String)>, Vec<(String, i32, Vec<Partition>)>);

/// A client for admin calls.
#[pyclass(frozen, module = "awoke._native")]
pub struct Admin {
    inner: Open<engine::Admin>,
}

type Call = Completion<awoke_engine::Result<Outcome>>;

#[pymethods]
impl Admin {
    #[new]
    fn new(py: Python<'_>, properties: Properties, events: &EventBox) -> Result<Self> {
        let events = Arc::clone(&events.inner);
        let inner = py.detach(|| engine::Admin::new(&properties.config(), events))?;
        Ok(Self { inner: Open::new("admin", inner) })
    }

    /// Returns brokers as (id, address), topics as (name, error code, partitions). Blocks with the GIL released.
    #[pyo3(signature = (topic, timeout_s))]
    fn metadata(&self, py: Python<'_>, topic: Option<&str>, timeout_s: f64) -> Result<Found> {
        let timeout = seconds(timeout_s)?;
        let admin = self.inner.get()?;
        // The client may be closed meanwhile: then this drops it, which waits for its threads.
        let metadata = py.detach(move || admin.metadata(topic, timeout))?;
        let brokers = metadata.brokers.into_iter().map(|broker| (broker.id, broker.address)).collect();
        let topics = metadata.topics.into_iter().map(|topic| {
            let partitions = topic.partitions.into_iter();
            let partitions = partitions
                .map(|partition| (partition.partition, partition.leader, partition.replicas, partition.in_sync))
                .collect();
            (topic.name, topic.error.map_or(0, |code| code.0), partitions)
        });
        Ok((brokers, topics.collect()))
    }

    /// Sends a request of this kind with its arguments (`awoke_kafka::AdminRequest`). Does not block.
    fn request(&self, kind: &str, arguments: &Bound<'_, PyAny>, timeout_s: f64) -> Result<PendingCall> {
        let timeout = seconds(timeout_s)?;
        Ok(PendingCall { completion: self.inner.get()?.request(&request(kind, arguments)?, timeout)?, timeout })
    }

    /// Ends the client; calls that have no answer fail. Blocks with the GIL released. Does nothing in a forked child.
    fn close(&self, py: Python<'_>) {
        self.inner.close(py, engine::Admin::close); // Even if another thread still holds it while it asks for metadata.
    }
}

fn request(kind: &str, arguments: &Bound<'_, PyAny>) -> PyResult<Request> {
    Ok(match kind {
        "create_topics" => Request::CreateTopics(arguments.extract()?),
        "delete_topics" => Request::DeleteTopics(arguments.extract()?),
        "create_partitions" => Request::CreatePartitions(arguments.extract()?),
        "describe_configs" => Request::DescribeConfigs(arguments.extract()?),
        "alter_configs" => Request::AlterConfigs(arguments.extract()?),
        "list_groups" => Request::ListGroups,
        "describe_groups" => Request::DescribeGroups(arguments.extract()?),
        "delete_groups" => Request::DeleteGroups(arguments.extract()?),
        "group_offsets" => Request::GroupOffsets(arguments.extract()?),
        "alter_group_offsets" => Request::AlterGroupOffsets(arguments.extract()?),
        "delete_group_offsets" => Request::DeleteGroupOffsets(arguments.extract()?),
        "list_offsets" => Request::ListOffsets(arguments.extract()?),
        "list_stable_offsets" => Request::ListStableOffsets(arguments.extract()?),
        "delete_records" => Request::DeleteRecords(arguments.extract()?),
        "create_acls" => Request::CreateAcls(arguments.extract()?),
        "describe_acls" => Request::DescribeAcls(arguments.extract()?),
        "delete_acls" => Request::DeleteAcls(arguments.extract()?),
        "elect_leaders" => Request::ElectLeaders(arguments.extract()?),
        _ => return Err(PyValueError::new_err(format!("there is no admin request {kind:?}"))),
    })
}

/// An admin call that is under way.
#[pyclass(frozen, module = "awoke._native")]
pub struct PendingCall {
    completion: Arc<Call>,
    timeout: Duration,
}

#[pymethods]
impl PendingCall {
    /// Waits for the answer and returns it. Blocks with the GIL released.
    fn wait<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let since = Instant::now();
        // The request has its own time-out, which comes first: its error says more than this one.
        let deadline = Deadline::after(Some(self.timeout + Duration::from_secs(1)));
        if wait_for(py, &self.completion, &deadline)?.is_none() {
            let error = Error::TimedOut { operation: "wait for the brokers".into(), waited: since.elapsed() };
            return Err(error.into());
        }
        self.result(py)
    }

    /// Returns whether the answer is there. Does not block.
    fn done(&self) -> bool {
        self.completion.is_done()
    }

    /// Returns the answer, which must be there. Does not block. Its form is that of `awoke_kafka::AdminOutcome`.
    fn result<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let not_yet = || Err(Error::Invalid { reason: "the call has no answer yet".into() });
        Ok(match self.completion.get().unwrap_or_else(not_yet)? {
            Outcome::Entries(entries) => entries.into_bound_py_any(py)?,
            Outcome::Offsets(offsets) => offsets.into_bound_py_any(py)?,
            Outcome::Configs(resources) => resources.into_bound_py_any(py)?,
            Outcome::GroupList(groups) => groups.into_bound_py_any(py)?,
            Outcome::Groups(groups) => groups.into_bound_py_any(py)?,
            Outcome::Acls(acls) => acls.into_bound_py_any(py)?,
        })
    }

    /// Has `token` posted to the mailbox when the answer comes. Returns `False` when it is there already.
    fn notify(&self, mailbox: &Mailbox, token: u64) -> bool {
        self.completion.register(mailbox.waker(token))
    }

    fn __await__<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        resolve(slf)
    }
}
