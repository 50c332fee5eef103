//! The walk over the bytes of an Avro value, as Python sees it.

use awoke_engine::avro_walk as engine;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Walks over Avro values of one schema, and refuses those that would kill their decoder. Any thread.
#[pyclass(frozen, module = "awoke._native")]
pub struct AvroWalk {
    inner: engine::AvroWalk,
}

#[pymethods]
impl AvroWalk {
    /// Makes the walk of types, of which the first is the value's: each has a kind, and its sizes or the places of
    /// other types.
    #[new]
    fn new(types: Vec<(String, Vec<usize>)>) -> PyResult<Self> {
        let found: Option<Vec<_>> = types.iter().map(|(kind, numbers)| type_of(kind, numbers)).collect();
        let made = found.and_then(engine::AvroWalk::new);
        made.map(|inner| Self { inner }).ok_or_else(|| PyValueError::new_err("the types of the schema are not whole"))
    }

    /// Checks a value. Does not block.
    ///
    /// Raises:
    ///     ValueError: it is nested too deep, has too many values or digits, or is not of the schema.
    fn check(&self, data: &[u8]) -> PyResult<()> {
        self.inner.check(data).map_err(|refused| PyValueError::new_err(refused.to_string()))
    }
}

fn type_of(kind: &str, numbers: &[usize]) -> Option<engine::Type> {
    Some(match (kind, numbers) {
        ("fixed", [size]) => engine::Type::Fixed(*size),
        ("number", []) => engine::Type::Number,
        ("bytes", []) => engine::Type::Bytes(usize::MAX),
        ("bytes", [most]) => engine::Type::Bytes(*most),
        ("record", fields) => engine::Type::Record(fields.to_vec()),
        ("union", branches) => engine::Type::Union(branches.to_vec()),
        ("array", [item]) => engine::Type::Array(*item),
        ("map", [item]) => engine::Type::Map(*item),
        _ => return None,
    })
}
