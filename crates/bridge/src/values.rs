//! Plain values that cross the bridge: bytes and seconds.

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::Result;

/// Converts a value or a key to bytes of Python's; `None` stays `None`.
pub fn bytes<'py>(py: Python<'py>, value: Option<&[u8]>) -> Bound<'py, PyAny> {
    value.map_or_else(|| py.None().into_bound(py), |value| PyBytes::new(py, value).into_any())
}

/// Converts seconds from Python to a duration; negative ones to zero.
pub fn seconds(seconds: f64) -> Result<Duration> {
    let converted = Duration::try_from_secs_f64(seconds.max(0.0));
    Ok(converted.map_err(|_| PyValueError::new_err(format!("{seconds} is no number of seconds")))?)
}

/// Converts seconds from Python to a duration; `None` for no limit.
pub fn duration(limit_s: Option<f64>) -> Result<Option<Duration>> {
    limit_s.map(seconds).transpose()
}
