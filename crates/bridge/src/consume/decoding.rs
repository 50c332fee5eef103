//! Decodes the values of a batch.

use pyo3::prelude::*;

use crate::consume::Batch;
use crate::values::bytes;

impl Batch {
    /// Decodes the value of the message at `index`; without a decoder its bytes.
    pub fn decode<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        let (value, offset) = self.with(index, |message| (bytes(py, message.value()), message.offset()));
        let Some(decoder) = &self.decoder else { return Ok(value) };
        let is_tombstone = value.is_none();
        decoder.bind(py).call1((value,)).map_err(|cause| self.decode_error(py, offset, is_tombstone, cause))
    }

    fn decode_error(&self, py: Python<'_>, offset: i64, is_tombstone: bool, cause: PyErr) -> PyErr {
        let at = &self.at;
        let text = if is_tombstone {
            format!("{at} offset {offset}: is a tombstone, and the route's type takes no None: say value=T | None")
        } else {
            format!("{at} offset {offset}: the value does not decode: {cause}")
        };
        let made = py
            .import("awoke.errors")
            .and_then(|errors| errors.getattr("DecodeError"))
            .and_then(|class| class.call1((text, &*at.topic, at.partition, offset)));
        match made {
            Ok(error) => {
                let error = PyErr::from_value(error);
                error.set_cause(py, Some(cause));
                error
            }
            Err(failed) => failed,
        }
    }
}
