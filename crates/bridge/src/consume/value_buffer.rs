//! The bytes of a message's value, lent to Python.

use std::ffi::{c_int, c_void};

use awoke_engine::kafka::ValueBytes;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

/// Lends the bytes of a message's value; keeps librdkafka's memory for as long as a buffer of it is in use.
#[pyclass(frozen, module = "awoke._native")]
pub struct ValueBuffer {
    pub lent: ValueBytes,
}

#[pymethods]
impl ValueBuffer {
    /// # Safety
    /// Called by Python with a view to fill.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let value = slf.get().lent.as_slice();
        // SAFETY: the bytes live as long as the exporter, which the view keeps alive, and they are read-only.
        let filled = unsafe {
            let start = value.as_ptr().cast::<c_void>().cast_mut();
            ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, value.len() as isize, 1, flags)
        };
        if filled == 0 {
            Ok(())
        } else {
            Err(PyErr::take(slf.py()).unwrap_or_else(|| PyBufferError::new_err("refused")))
        }
    }
}
