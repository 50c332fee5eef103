//! Decodes the keys and the values of a batch.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::consume::Batch;
use crate::values::bytes;

/// The functions that decode the messages of a route; `None` leaves the bytes.
#[pyclass(frozen, module = "awoke._native")]
pub struct Decoders {
    /// Of keys and of values, in the order of `Part`.
    functions: [Option<Py<PyAny>>; 2],
    /// True if they get the headers of the message, too.
    with_headers: bool,
    /// True if that of values also gets the key, as its bytes.
    with_key: bool,
}

#[pymethods]
impl Decoders {
    #[new]
    #[pyo3(signature = (value=None, key=None, *, with_headers=false, with_key=false))]
    const fn new(value: Option<Py<PyAny>>, key: Option<Py<PyAny>>, with_headers: bool, with_key: bool) -> Self {
        Self { functions: [key, value], with_headers, with_key }
    }
}

/// A part of a message.
#[derive(Clone, Copy)]
pub enum Part {
    Key,
    Value,
}

impl Batch {
    /// Decodes a part of the message at `index`; without a decoder its bytes.
    pub fn decode<'py>(&self, py: Python<'py>, index: usize, part: Part) -> PyResult<Bound<'py, PyAny>> {
        let found = self.with(index, |message| bytes(py, [message.key(), message.value()][part as usize]));
        let Some((function, decoders)) = self.decoder_of(part) else { return Ok(found) };
        let (function, is_missing) = (function.bind(py), found.is_none());
        let headers = decoders.with_headers.then(|| self.headers(py, index)).transpose()?;
        let key = (decoders.with_key && matches!(part, Part::Value))
            .then(|| self.with(index, |message| bytes(py, message.key())));
        let made = match (headers, key) {
            (Some(headers), Some(key)) => function.call1((&found, headers, key)),
            (Some(headers), None) => function.call1((&found, headers)),
            _ => function.call1((&found,)),
        };
        made.map_err(|cause| self.decode_error(py, (self.offset_of(index), part), is_missing, cause))
    }

    /// Returns the function that decodes a part, and what else it gets; `None` leaves the bytes.
    fn decoder_of(&self, part: Part) -> Option<(&Py<PyAny>, &Decoders)> {
        let decoders = self.decoders.as_ref()?.get();
        Some((decoders.functions[part as usize].as_ref()?, decoders))
    }

    /// Decodes a part of all messages.
    pub fn decode_all<'py>(&self, py: Python<'py>, part: Part) -> PyResult<Bound<'py, PyList>> {
        if self.decoder_of(part).is_none() {
            return PyList::new(py, self.each(|message| bytes(py, [message.key(), message.value()][part as usize])));
        }
        let found = (0..self.len()).map(|index| self.decode(py, index, part)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, found)
    }

    /// Returns the headers of the message at `index`, in order.
    pub fn headers<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyList>> {
        let headers: Vec<_> = self.with(index, |message| {
            let pairs = message.headers().into_iter();
            pairs.map(|(name, value)| (PyString::new(py, &name), bytes(py, value))).collect()
        });
        PyList::new(py, headers)
    }

    fn decode_error(&self, py: Python<'_>, (offset, part): (i64, Part), is_missing: bool, cause: PyErr) -> PyErr {
        if !cause.is_instance_of::<PyException>(py) {
            return cause; // The interruption of the thread is no word about the message.
        }
        let at = &self.at;
        let (name, missing) = [("key", "has no key"), ("value", "is a tombstone")][part as usize];
        let text = if is_missing {
            format!("{at} offset {offset}: {missing}, and the route's type takes no None: say {name}=T | None")
        } else {
            format!("{at} offset {offset}: the {name} does not decode: {cause}")
        };
        let class = py.import("awoke.errors").and_then(|errors| errors.getattr("DecodeError"));
        let made = class.and_then(|class| class.call1((text, &*at.topic, at.partition, offset)));
        made.map_or_else(std::convert::identity, |error| {
            let error = PyErr::from_value(error);
            error.set_cause(py, Some(cause));
            error
        })
    }
}
