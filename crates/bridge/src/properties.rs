//! librdkafka's settings from Python, with the function that returns tokens.

use std::collections::BTreeMap;
use std::sync::Arc;

use awoke_engine::kafka::{ClientConfig, Token, TokenSource};
use pyo3::prelude::*;

/// A dict of librdkafka's properties. Its attribute `token_source`, if there is one, is called without arguments for a
/// token. It returns the value, the expiry in ms since 1970, the principal, and the extensions.
pub struct Properties {
    properties: BTreeMap<String, String>,
    token_source: Option<Py<PyAny>>,
}

impl<'py> FromPyObject<'_, 'py> for Properties {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let source = given.getattr_opt("token_source")?.filter(|source| !source.is_none());
        Ok(Self { properties: given.extract()?, token_source: source.map(Bound::unbind) })
    }
}

impl Properties {
    /// Converts them to the engine's form.
    pub fn config(self) -> ClientConfig {
        let mut config = ClientConfig::new();
        for (property, value) in self.properties {
            config.set(property, value);
        }
        if let Some(function) = self.token_source {
            config.set_token_source(Arc::new(PythonSource { function }));
        }
        config
    }
}

/// A Python function that returns tokens.
struct PythonSource {
    function: Py<PyAny>,
}

impl TokenSource for PythonSource {
    fn token(&self) -> Result<Token, String> {
        // A process that ends has no Python interpreter to call.
        Python::try_attach(|py| self.ask(py).map_err(|error| describe(py, &error)))
            .unwrap_or_else(|| Err("the process ends".into()))
    }
}

impl PythonSource {
    fn ask(&self, py: Python<'_>) -> PyResult<Token> {
        let (value, expires_at_ms, principal, extensions) = self.function.bind(py).call0()?.extract()?;
        Ok(Token { value, expires_at_ms, principal, extensions })
    }
}

/// Returns an exception as one line of text.
fn describe(py: Python<'_>, error: &PyErr) -> String {
    let name = error.get_type(py).name().map_or_else(|_| "error".into(), |name| name.to_string());
    format!("{name}: {}", error.value(py))
}
