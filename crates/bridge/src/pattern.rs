//! Regular expressions whose time is linear in the text, as Python sees them: for patterns that come with messages.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use regex_lite::{Regex, RegexBuilder};

/// The most memory of a pattern, in bytes: its time grows with its size.
const SIZE_MAX: usize = 64 * 1024;

/// A regular expression without looking around and without references back. Any thread.
#[pyclass(frozen, module = "awoke._native")]
pub struct LinearPattern {
    inner: Regex,
}

#[pymethods]
impl LinearPattern {
    /// Compiles a pattern.
    ///
    /// Raises:
    ///     ValueError: it is none, is too large, or needs more than linear time.
    #[new]
    fn new(pattern: &str) -> PyResult<Self> {
        let made = RegexBuilder::new(pattern).size_limit(SIZE_MAX).build();
        made.map(|inner| Self { inner }).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Returns whether the pattern is found anywhere in a text. Takes time; the GIL is released.
    fn search(&self, py: Python<'_>, text: &str) -> bool {
        py.detach(|| self.inner.is_match(text))
    }
}
