//! The engine's errors as the classes of `awoke.errors`. The match is exhaustive: each new variant needs its class
//! here.

use std::time::Duration;

use awoke_engine::Error;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The operation that failed. It decides the class of two errors that the engine has in common for all operations.
#[derive(Clone, Copy)]
pub enum Doing {
    Delivery,
    Other,
}

/// Makes a Python exception of an error of the engine or of a waiting primitive.
pub fn to_python<E: Clone + Into<Error>>(error: &E) -> PyErr {
    raise(&error.clone().into(), Doing::Other)
}

/// Makes a Python exception of the error of a delivery.
pub fn delivery_to_python(error: &Error) -> PyErr {
    raise(error, Doing::Delivery)
}

fn raise(error: &Error, doing: Doing) -> PyErr {
    Python::attach(|py| instance(py, error, doing).map_or_else(|failed| failed, PyErr::from_value))
}

fn instance<'py>(py: Python<'py>, error: &Error, doing: Doing) -> PyResult<Bound<'py, PyAny>> {
    let text = error.to_string();
    let (class, arguments) = match (error, doing) {
        (Error::Config { property, .. }, _) => ("ConfigError", (text, property).into_pyobject(py)?.into_any()),
        (Error::Kafka { code, .. }, Doing::Delivery) => {
            ("delivery_failed", (text, code.0, code.name(), code.is_retriable()).into_pyobject(py)?.into_any())
        }
        (Error::Kafka { code, .. }, Doing::Other) => {
            ("kafka_error", (text, code.0, code.name(), code.is_retriable()).into_pyobject(py)?.into_any())
        }
        (Error::Forked { pid, .. }, _) => ("ForkedClientError", (text, *pid).into_pyobject(py)?.into_any()),
        (Error::Closed { .. }, _) => ("ClosedError", (text,).into_pyobject(py)?.into_any()),
        (Error::QueueFull { waited, .. }, _) => {
            ("QueueFull", (text, waited.as_secs_f64()).into_pyobject(py)?.into_any())
        }
        (Error::MessageTooLarge { topic, size_bytes, .. }, _) => {
            ("MessageTooLarge", (text, topic, *size_bytes).into_pyobject(py)?.into_any())
        }
        (Error::TimedOut { operation, waited }, doing) => {
            let class = if matches!(doing, Doing::Delivery) { "DeliveryTimeout" } else { "OperationTimeout" };
            (class, (text, operation, waited.as_secs_f64()).into_pyobject(py)?.into_any())
        }
        (Error::Fenced { topic, partition }, _) => {
            ("FencedError", (text, topic, *partition).into_pyobject(py)?.into_any())
        }
        (Error::Aborted { code, .. }, _) => {
            ("transaction_aborted", (text, code.0, code.name(), true).into_pyobject(py)?.into_any())
        }
        (Error::InDoubt { code, .. }, _) => {
            ("TransactionInDoubt", (text, code.0, code.name(), false).into_pyobject(py)?.into_any())
        }
        (Error::ProducerFenced { code, .. }, _) => {
            ("ProducerFenced", (text, code.0, code.name(), false).into_pyobject(py)?.into_any())
        }
        (Error::Poisoned { .. }, _) => ("SequencerBroken", (text,).into_pyobject(py)?.into_any()),
        (Error::Invalid { .. }, _) => return Ok(PyValueError::new_err(text).into_value(py).into_bound(py).into_any()),
        (Error::System { .. }, _) => ("SystemFailure", (text,).into_pyobject(py)?.into_any()),
    };
    py.import("awoke.errors")?.getattr(class)?.call1(arguments.cast_into::<PyTuple>()?)
}

/// Converts seconds from Python to a duration; `None` for no limit.
pub fn duration(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    seconds
        .map(|seconds| {
            Duration::try_from_secs_f64(seconds.max(0.0))
                .map_err(|_| PyValueError::new_err(format!("{seconds} is no number of seconds")))
        })
        .transpose()
}
