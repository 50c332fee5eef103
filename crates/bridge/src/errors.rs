//! The engine's errors as the classes of `awoke.errors`, and its lists of error codes. The match is exhaustive: each
//! new variant needs its class here.

use awoke_engine::kafka::Code;
use awoke_engine::{Error, wake};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyFrozenSet;

/// Returns the codes with which a record is refused now and later.
#[pyfunction]
pub fn permanent_codes(py: Python<'_>) -> PyResult<Bound<'_, PyFrozenSet>> {
    PyFrozenSet::new(py, Code::REFUSED_FOR_GOOD.map(|code| code.0))
}

/// Returns the codes for what the brokers do not allow.
#[pyfunction]
pub fn denied_codes(py: Python<'_>) -> PyResult<Bound<'_, PyFrozenSet>> {
    PyFrozenSet::new(py, Code::DENIED.map(|code| code.0))
}

/// An exception for Python: of an error of the engine, of a waiting primitive, or of Python's own.
pub struct Raised(PyErr);

/// The result of a call of the bridge.
pub type Result<T, E = Raised> = std::result::Result<T, E>;

impl From<Error> for Raised {
    fn from(error: Error) -> Self {
        Self(raise(&error, Doing::Other))
    }
}

impl From<wake::Error> for Raised {
    fn from(error: wake::Error) -> Self {
        Error::from(error).into()
    }
}

impl From<PyErr> for Raised {
    fn from(error: PyErr) -> Self {
        Self(error)
    }
}

impl From<Raised> for PyErr {
    fn from(raised: Raised) -> Self {
        raised.0
    }
}

/// The operation that failed. It decides the class of two errors that the engine has in common for all operations.
#[derive(Clone, Copy)]
enum Doing {
    Delivery,
    Other,
}

/// Makes an exception of the error of a delivery.
pub fn of_delivery(error: &Error) -> Raised {
    Raised(raise(error, Doing::Delivery))
}

fn raise(error: &Error, doing: Doing) -> PyErr {
    Python::attach(|py| instance(py, error, doing).map_or_else(|failed| failed, PyErr::from_value))
}

fn instance<'py>(py: Python<'py>, error: &Error, doing: Doing) -> PyResult<Bound<'py, PyAny>> {
    let text = error.to_string();
    let of_code = |code: Code, is_retriable: bool| (&text, code.0, code.name(), is_retriable).into_pyobject(py);
    let (class, arguments) = match (error, doing) {
        (Error::Config { property, .. }, _) => ("ConfigError", (text, property).into_pyobject(py)?),
        (Error::Kafka { code, .. }, Doing::Delivery) => ("delivery_failed", of_code(*code, code.is_retriable())?),
        (Error::Kafka { code, .. }, Doing::Other) => ("kafka_error", of_code(*code, code.is_retriable())?),
        (Error::Aborted { code, .. }, _) => ("transaction_aborted", of_code(*code, true)?),
        (Error::InDoubt { code, .. }, _) => ("TransactionInDoubt", of_code(*code, false)?),
        (Error::ProducerFenced { code, .. }, _) => ("ProducerFenced", of_code(*code, false)?),
        (Error::Forked { pid, .. }, _) => ("ForkedClientError", (text, *pid).into_pyobject(py)?),
        (Error::Closed { .. }, _) => ("ClosedError", (text,).into_pyobject(py)?),
        (Error::QueueFull { waited, .. }, _) => ("QueueFull", (text, waited.as_secs_f64()).into_pyobject(py)?),
        (Error::MessageTooLarge { topic, size_bytes, .. }, _) => {
            ("MessageTooLarge", (text, topic, *size_bytes).into_pyobject(py)?)
        }
        (Error::TimedOut { operation, waited }, doing) => {
            let class = if matches!(doing, Doing::Delivery) { "DeliveryTimeout" } else { "OperationTimeout" };
            (class, (text, operation, waited.as_secs_f64()).into_pyobject(py)?)
        }
        (Error::Fenced { topic, partition }, _) => ("FencedError", (text, topic, *partition).into_pyobject(py)?),
        (Error::Poisoned { .. }, _) => ("SequencerBroken", (text,).into_pyobject(py)?),
        (Error::Invalid { .. }, _) => return Ok(PyValueError::new_err(text).into_value(py).into_bound(py).into_any()),
        (Error::System { .. }, _) => ("SystemFailure", (text,).into_pyobject(py)?),
    };
    py.import("awoke.errors")?.getattr(class)?.call1(arguments)
}
